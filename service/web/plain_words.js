// Texts of the API in the words of the page: they are written for programmers, too.

const WORDS = [
  [/\bReceived: (an? [^\n]*[^\n.])\.?/g, "This is $1."],
  // A person sees beside the text what was sent.
  [/\s*Received: [^\n]*/g, ""],
  [/(log-likelihood[^.]* by \S+) nats per row/g, "$1 per row"],
  [/\bin nats per row\b/g, "in log likelihood per row"],
  [/(\d\S*) nats per row/g, "$1 in log likelihood per row"],
  [/,? in nats\b/g, ""],
  [/\bKL divergence\b/g, "divergence from the prior"],
  [/\bkl_weight \* N of the layers\b/g, "How much the prior counts"],
  [/(\d) members\b/g, "$1 networks"],
  [/`?max_seconds`? = (\S+)/g, "The limit of $1 seconds"],
  // Options of the command line.
  [/ ?\([^()]*--[a-z][^()]*\)/g, ""],
  [/`/g, ""],
];
// Words of options and their descriptions, which have no names of columns.
const OPTION_WORDS = [
  [/\bmember(s?)\b/g, "network$1"],
  [/\bMembers\b/g, "Networks"],
  [/\bthe divergence\b/g, "the prior"],
  [/\bq\(w\)/g, "the posterior"],
  [/ p\(w\)/g, ""],
];

/** A text of the API, without what only programs need. */
export function plain(text) {
  return replaceAll(String(text ?? ""), WORDS);
}

/** The description of an option, or undefined. */
export function plainOption(text) {
  return text && replaceAll(plain(text), OPTION_WORDS).replaceAll("\n", " ");
}

/**
 * What is wrong with a field, for a place beside it: "Must be a whole number."
 * @param {string} text The error, which begins with the path of the field in backticks.
 * @param {(path: string) => string|undefined} labelOf Finds the label of another field.
 */
export function plainProblem(text, labelOf) {
  const rule = text.replace(/^`[^`]*`:? /, "");
  const named = rule.replace(/`([^`]+)`/g, (whole, path) => {
    const label = labelOf(path);
    return label ? `“${label}”` : path;
  });
  const said = replaceAll(plain(named), OPTION_WORDS).trim();
  return said.charAt(0).toUpperCase() + said.slice(1) + (/[.!?]$/.test(said) ? "" : ".");
}

function replaceAll(text, words) {
  return words.reduce((done, [pattern, by]) => done.replace(pattern, by), text);
}
