// Hands over a file: a link could not send a key, so what is fetched with one is saved from memory.

const SOON = 10_000; // milliseconds until its address is given back

export function download(content, name) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content])), link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), SOON);
}
