// Texts of the API in the words of the page: they are written for programmers, too.

const WORDS = [
  [/\bReceived: (an? [^\n]*[^\n.])\.?/g, "This is $1."],
  // A person sees beside the text what was sent.
  [/\s*Received: [^\n]*/g, ""],
  [/\b(in )?nats per row\b/g, "in log likelihood per row"],
  [/,? in nats\b/g, ""],
  [/\bKL divergence\b/g, "divergence from the prior"],
  [/\bkl_weight \* N of the layers\b/g, "How much the prior counts"],
  [/(\d) members\b/g, "$1 networks"],
  // Options of the command line.
  [/ ?\([^()]*--[a-z][^()]*\)/g, ""],
  [/`/g, ""],
];

/** A text of the API, without what only programs need. */
export function plain(text) {
  return WORDS.reduce((done, [pattern, by]) => done.replace(pattern, by), String(text ?? ""));
}

/** The same of a text on the training, which has no names of columns. */
export function plainTraining(text) {
  return plain(text).replace(/\bmember(s?)\b/g, "network$1");
}

/** What is wrong with a field, for a place beside it: "Must be a whole number." */
export function plainProblem(text) {
  const said = plain(text.replace(/^`[^`]*`:? /, "")).trim();
  return said.charAt(0).toUpperCase() + said.slice(1) + (/[.!?]$/.test(said) ? "" : ".");
}
