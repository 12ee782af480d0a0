/** Decodes output from the wire: base64 is arbitrary bytes, decoded as UTF-8 with replacement across chunk borders. */
import { bytesOf, type WireBytes } from "../wire/operation.ts";

export interface OutputDecoder {
  push(bytes: WireBytes): string;
  /** Returns the replacement of an unfinished character at the very end. */
  end(): string;
}

export function createOutputDecoder(): OutputDecoder {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    push: (bytes) => decoder.decode(bytesOf(bytes), { stream: true }),
    end: () => decoder.decode(),
  };
}

export function decodeText(bytes: WireBytes): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(bytes));
}
