import { HclError } from "../hcl-error.ts";
import type { Range, Source } from "../source.ts";
import { type HclToken, scanToken } from "./tokens.ts";

/** Deeper nesting than any hand-written file has, and less than exhausts the stack. */
const maxDepth = 200;

/** Reads the tokens of a text, one after another. */
export class Reader {
  readonly source: Source;
  /** The offset of the next token. Code that reads the inside of a text by itself sets it. */
  at: number;
  #skipsLines = false;
  #depth = 0;
  #next: { at: number; skipsLines: boolean; token: HclToken } | undefined;
  #lastEnd = 0;

  constructor(source: Source) {
    this.source = source;
    this.at = source.text.startsWith("\uFEFF") ? 1 : 0;
  }

  peek(): HclToken {
    const next = this.#next;
    if (next?.at === this.at && next.skipsLines === this.#skipsLines) return next.token;
    const token = scanToken(this.source, this.at, this.#skipsLines);
    this.#next = { at: this.at, skipsLines: this.#skipsLines, token };
    return token;
  }

  read(): HclToken {
    const token = this.peek();
    this.at = token.range.end;
    this.#lastEnd = this.at;
    return token;
  }

  /** True if the next token is this mark. */
  isAt(mark: string): boolean {
    const { kind, text } = this.peek();
    return kind === "mark" && text === mark;
  }

  /** Reads this mark if it is the next token. */
  take(mark: string): HclToken | undefined {
    return this.isAt(mark) ? this.read() : undefined;
  }

  /** True if the next token is this name. */
  isAtName(name: string): boolean {
    const { kind, text } = this.peek();
    return kind === "name" && text === name;
  }

  /** Runs `action`, in which line breaks are skipped, or kept as tokens. */
  within<Result>(lines: "skipped" | "kept", action: () => Result): Result {
    const before = this.#skipsLines;
    this.#skipsLines = lines === "skipped";
    try {
      return action();
    } finally {
      this.#skipsLines = before;
    }
  }

  /** Runs `action`, which parses something that can be nested. */
  nested<Result>(action: () => Result): Result {
    this.#depth += 1;
    if (this.#depth > maxDepth)
      throw new HclError(`it is nested more than ${maxDepth} levels deep`, this.peek().range);
    try {
      return action();
    } finally {
      this.#depth -= 1;
    }
  }

  /** Returns the range from a start to the end of what was read last. */
  since(start: number): Range {
    return { source: this.source, start, end: Math.max(start, this.#lastEnd) };
  }

  /** Continues at an offset, after the caller has read up to it by itself. */
  continueAt(offset: number): void {
    this.at = offset;
    this.#lastEnd = offset;
  }

  /** Reads the mark that closes what `open` began. `wanted` names what could stand here. */
  requireClose(mark: string, open: HclToken, wanted = `a ${mark}`): void {
    if (this.take(mark) !== undefined) return;
    if (this.peek().kind === "end") this.fail(`this ${open.text} is not closed by ${mark}`, open.range);
    this.fail(`${wanted} is required here`);
  }

  fail(message: string, range: Range = this.peek().range, hint?: string): never {
    throw new HclError(message, range, hint);
  }
}
