/** What a registry asks for in `WWW-Authenticate`. */
export interface Challenge {
  scheme: "basic" | "bearer";
  /** Names are in lower case. */
  parameters: ReadonlyMap<string, string>;
}

/** Returns the challenge to answer: Bearer before Basic. `undefined` if neither is asked for. */
export function parseChallenge(header: string | null): Challenge | undefined {
  const found = parseAll(header ?? "");
  return found.find(({ scheme }) => scheme === "bearer") ?? found.find(({ scheme }) => scheme === "basic");
}

/** RFC 9110, 11.6.1: challenges and their parameters are separated by commas alike. */
function parseAll(header: string): Challenge[] {
  const challenges: { scheme: Challenge["scheme"] | undefined; parameters: Map<string, string> }[] = [];
  const pattern = /([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?[\s,]*/y;
  for (;;) {
    const match = pattern.exec(header);
    if (match === null) break;
    const [text, name = "", quoted, token] = match;
    if (text === "") break;
    if (quoted === undefined && token === undefined)
      challenges.push({ scheme: schemes[name.toLowerCase()], parameters: new Map() });
    else
      challenges.at(-1)?.parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? token ?? "");
  }
  return challenges.flatMap(({ scheme, parameters }) =>
    scheme === undefined ? [] : [{ scheme, parameters }],
  );
}

const schemes: Readonly<Record<string, Challenge["scheme"]>> = { basic: "basic", bearer: "bearer" };
