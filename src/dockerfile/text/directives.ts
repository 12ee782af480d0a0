/** Parser directives: `# name=value` comments at the very top of the file (Dockerfile reference, "Parser directives"). */

export type EscapeCharacter = "\\" | "`";

const form = /^#[\t\n\f\r ]*([a-zA-Z][a-zA-Z0-9]*)[\t\n\f\r ]*=[\t\n\f\r ]*(.+?)[\t\n\f\r ]*$/;
const knownNames = new Set(["syntax", "escape", "check"]);

/** Reads a file's lines from the top. The first line that is not a directive ends the directives. */
export class DirectiveReader {
  readonly values = new Map<string, string>();
  escape: EscapeCharacter = "\\";
  private isDone = false;

  /** Reads one line. Returns the problem of an invalid directive. */
  take(line: string): { message: string; expected: string } | undefined {
    if (this.isDone) return undefined;
    const [, written = "", value = ""] = form.exec(line) ?? [];
    const name = written.toLowerCase();
    if (!knownNames.has(name)) {
      this.isDone = true;
      return undefined;
    }
    if (this.values.has(name)) {
      return { message: `only one ${name} parser directive can be used`, expected: `one # ${name}= line` };
    }
    this.values.set(name, value);
    if (name !== "escape") return undefined;
    if (value !== "\\" && value !== "`") {
      const message = `invalid escape token '${value}' does not match \` or \\`;
      return { message, expected: "# escape=` or # escape=\\" };
    }
    this.escape = value;
    return undefined;
  }
}
