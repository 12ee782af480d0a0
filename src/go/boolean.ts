/** Parses a boolean as Go does; `undefined` for anything else. https://pkg.go.dev/strconv#ParseBool */
export function parseGoBoolean(text: string | undefined): boolean | undefined {
  if (/^(1|t|T|true|TRUE|True)$/.test(text ?? "")) return true;
  return /^(0|f|F|false|FALSE|False)$/.test(text ?? "") ? false : undefined;
}
