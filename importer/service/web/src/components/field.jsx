// Fields of forms, each with its label.

export const Field = ({ id, label, children }) => <div class="field"><label for={id}>{label}</label>{children}</div>;

const PLAINLY = { autocapitalize: "off", autocorrect: "off", spellcheck: "false", autocomplete: "off" };

export const Input = ({ id, label, ...rest }) => <Field id={id} label={label}><input id={id} name={id} {...PLAINLY} {...rest} /></Field>;
export const Area = ({ id, label, ...rest }) => <Field id={id} label={label}><textarea id={id} name={id} {...PLAINLY} {...rest} /></Field>;

// ``options`` are pairs of a value and its text, or groups of them: {label, options}.
export function Choice({ id, label, options, value, ...rest }) {
  return (
    <Field id={id} label={label}>
      <select id={id} name={id} value={value} {...rest}>
        {options.map((one) => (one.options ? <optgroup key={one.label} label={one.label}>{one.options.map(option(value))}</optgroup> : option(value)(one)))}
      </select>
    </Field>
  );
}

const option = (chosen) => ([one, text]) => <option key={one} value={one} selected={chosen === undefined ? undefined : one === chosen}>{text}</option>;

// Boxes of one name; those in ``chosen`` are checked.
export function Boxes({ name, legend, options, chosen, draw }) {
  return (
    <fieldset><legend>{legend}</legend>{options.map((one) => (
      <label class="box" key={one}><input type="checkbox" name={name} value={one} checked={chosen.includes(one)} />{draw(one)}</label>
    ))}</fieldset>
  );
}
