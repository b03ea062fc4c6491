// The initials and the figures of a model, for every list of models.

const HUES = 6; // colours of initials, as the styles have them

// The first letters of the owner; no picture of another host is ever loaded.
export function Initials({ model }) {
  const owner = (model ?? "").split("/")[0], words = owner.match(/[A-Za-z0-9]+/g) ?? [];
  const letters = (words.length > 1 ? words[0][0] + words[1][0] : (words[0] ?? "").slice(0, 2)).toUpperCase();
  const hue = [...owner].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 997, 7) % HUES;
  return <span class={`initials hue-${hue}`} aria-hidden="true">{letters}</span>;
}

// Names and values; what is unknown is left out.
export const Figures = ({ told }) => (
  <dl class="figures">{told.filter(([, value]) => value).map(([name, value]) => (
    <div key={name}><dt>{name}</dt><dd class="break">{value}</dd></div>
  ))}</dl>
);
