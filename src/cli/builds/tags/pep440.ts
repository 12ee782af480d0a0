import type { Version } from "./version.ts";

const separator = "[-_.]?";
const local = "[a-z0-9]+(?:[-_.][a-z0-9]+)*";
const pattern = new RegExp(
  [
    "^v?(?:(?<epoch>\\d+)!)?(?<release>\\d+(?:\\.\\d+)*)",
    `(?:${separator}(?<pre>alpha|a|beta|b|preview|pre|c|rc)${separator}(?<preNumber>\\d*))?`,
    `(?<post>-(?<bare>\\d+)|${separator}(?:post|rev|r)${separator}(?<postNumber>\\d*))?`,
    `(?<dev>${separator}dev${separator}(?<devNumber>\\d*))?(?:\\+(?<local>${local}))?$`,
  ].join(""),
);
const shortPhases: Readonly<Record<string, string>> = {
  ...{ alpha: "a", beta: "b", c: "rc", pre: "rc", preview: "rc" },
};

/** Parses a version of a package of Python, also with a `v` before it: https://peps.python.org/pep-0440. `version` is its normal form. */
export function parsePythonVersion(raw: string): Version | undefined {
  const found = pattern.exec(raw.trim().toLowerCase())?.groups;
  if (found === undefined) return undefined;
  const { epoch = "0", pre, post, bare, dev, preNumber, postNumber, devNumber } = found;
  const numbers = (found.release ?? "").split(".").map(plain);
  const [major = "0", minor = "0", patch = "0"] = numbers;
  const version = [
    plain(epoch) === "0" ? "" : `${plain(epoch)}!`,
    numbers.join("."),
    pre === undefined ? "" : `${shortPhases[pre] ?? pre}${plain(preNumber)}`,
    post === undefined ? "" : `.post${plain(bare ?? postNumber)}`,
    dev === undefined ? "" : `.dev${plain(devNumber)}`,
    found.local === undefined
      ? ""
      : `+${found.local
          .split(/[-_.]/)
          .map((part) => (/^\d+$/.test(part) ? plain(part) : part))
          .join(".")}`,
  ].join("");
  const isRelease = [pre, post, dev].every((part) => part === undefined);
  return { isRelease, parts: { raw, version, major, minor, patch } };
}

/** Returns a number without leading zeros; one that is left out is 0. */
function plain(digits = ""): string {
  return digits.replace(/^0+(?=\d)/, "") || "0";
}
