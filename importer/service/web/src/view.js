// What every component of a view can ask for: const { me, route, again } = useView().
//   route   {pattern, params, parts, query} of the address
//   me      who asks: name, scopes, backends, the version of the server
//   again   loads the view's data once more; the page stays where it is
//   turn    grows with each load: a key for what has to begin anew with it

import { createContext } from "preact";
import { useContext } from "preact/hooks";

export const Here = createContext(null);
export const useView = () => useContext(Here);
