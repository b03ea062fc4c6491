// A number with its word.

export const number = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
