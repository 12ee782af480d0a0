const simple: Readonly<Record<string, string>> = {
  ...{ a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" },
  ...{ "\\": "\\", "'": "'", '"': '"' },
};

/** Returns what a literal of Go means: in double quotes, in backquotes, or of a character. `undefined`: it is invalid. */
export function unquote(literal: string): string | undefined {
  const [quote = ""] = literal;
  const inside = literal.slice(1, -1);
  if (quote === "`") return inside.replaceAll("\r", "");
  let isValid = true;
  const text = inside.replace(
    /\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{3}|[\s\S])/g,
    (_, escape: string) => {
      const [kind = ""] = escape;
      if (/^[0-7]{3}$/.test(escape)) return String.fromCodePoint(Number.parseInt(escape, 8));
      const code = escape.length > 1 ? Number.parseInt(escape.slice(1), 16) : undefined;
      if (code !== undefined && code <= 0x10ffff) return String.fromCodePoint(code);
      const plain = simple[kind];
      if (escape.length > 1 || plain === undefined || (/["']/.test(kind) && kind !== quote)) isValid = false;
      return plain ?? "";
    },
  );
  return isValid ? text : undefined;
}
