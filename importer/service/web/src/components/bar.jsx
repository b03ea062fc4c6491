// How far something is, as the browser draws it and a screen reader says it.

export const Bar = ({ label, value, max }) => <progress aria-label={label} value={value} max={max} />;
