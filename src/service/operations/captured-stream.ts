/** One stream of a command's output, as the events report it. */
import type { CapturedOutput, EventListener, OutputChunk } from "../service.ts";
import type { WireBytes } from "../wire/operation.ts";
import { createOutputDecoder } from "./record.ts";

export type StreamName = OutputChunk["stream"];

export interface LoggedOutput {
  /** True if nothing is missing. */
  whole: boolean;
  characters: number;
  /** Empty if the text is not held, as `isHeld` says. */
  text(): string;
  isHeld: boolean;
  /** True if `text` begins with this output. */
  begins(text: string): boolean;
}

interface CapturedStream {
  /** Adds output, and returns as much of it as the limit allows. */
  push(bytes: WireBytes): OutputChunk | undefined;
  /** Returns the last, unfinished character. */
  end(): OutputChunk | undefined;
  /** The service has left out some. */
  truncate(): void;
  readonly isTruncated: boolean;
  /** @param hasAll true if no event was lost */
  output(hasAll: boolean): LoggedOutput;
}

/** Characters of one stream: somewhat more than any request asks a service to keep (see operation.ts and request-id.ts). */
const maxCharacters = 32 * 1024 * 1024;
const digestName = "sha256";

export function createCapturedStream(stream: StreamName, { onRest }: EventListener): CapturedStream {
  const decoder = createOutputDecoder();
  /** A digest is enough for a listener that takes all output: it tells whether the record has the same output. */
  const held =
    onRest === undefined ? { parts: [] as string[] } : { digest: new Bun.CryptoHasher(digestName) };
  let characters = 0;
  let isTruncated = false;

  function take(text: string): OutputChunk | undefined {
    const part = text.slice(0, maxCharacters - characters);
    if (part.length < text.length) isTruncated = true;
    if (part === "") return undefined;
    if ("parts" in held) held.parts.push(part);
    else held.digest.update(part);
    characters += part.length;
    return { stream, text: part };
  }

  return {
    push: (bytes) => take(decoder.push(bytes)),
    end: () => take(decoder.end()),
    truncate() {
      isTruncated = true;
    },
    get isTruncated() {
      return isTruncated;
    },
    output(hasAll) {
      const whole = hasAll && !isTruncated;
      if ("parts" in held) {
        const { parts } = held;
        const text = () => parts.join("");
        return { whole, characters, text, isHeld: true, begins: (other) => other.startsWith(text()) };
      }
      const digest = held.digest.copy().digest("hex");
      const begun = characters;
      const begins = (other: string) =>
        new Bun.CryptoHasher(digestName).update(other.slice(0, begun)).digest("hex") === digest;
      return { whole, characters, text: () => "", isHeld: false, begins };
    },
  };
}

/**
 * Returns the fuller output of the events and the record. If the events' output is not held here, returns only what the record
 * has beyond it. `truncated` is true only if neither has everything.
 */
export function mergeOutput(log: LoggedOutput, record: CapturedOutput | undefined): CapturedOutput {
  const { whole, characters, text, isHeld } = log;
  if (record === undefined) return { text: text(), truncated: !whole && characters > 0 };
  const length = record.text.length;
  const isRecordWhole = !record.truncated && (!whole || length >= characters);
  const isLogWhole = !isRecordWhole && whole && characters >= length;
  const truncated = !isRecordWhole && !isLogWhole;
  if (isLogWhole || (!isRecordWhole && characters > length)) return { text: text(), truncated };
  if (isHeld) return { text: record.text, truncated };
  // If lost events have left a gap, all of the record is passed on.
  return { text: log.begins(record.text) ? record.text.slice(characters) : record.text, truncated };
}
