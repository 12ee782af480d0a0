import { trimStart } from "./space.ts";

type StringArray =
  | { kind: "strings"; words: string[] }
  /** An array all right, but of other things than strings: Docker refuses it. */
  | { kind: "not-strings" }
  /** Anything else: Docker takes it as plain text, even where it only misses a quote. */
  | { kind: "not-an-array" };

/** Reads the JSON form of an instruction's arguments. */
export function parseStringArray(text: string): StringArray {
  const trimmed = trimStart(text);
  if (!trimmed.startsWith("[")) return { kind: "not-an-array" };
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch {
    return { kind: "not-an-array" };
  }
  if (!Array.isArray(value)) return { kind: "not-an-array" };
  const words: string[] = [];
  for (const item of value) {
    if (typeof item !== "string") return { kind: "not-strings" };
    words.push(item.toWellFormed());
  }
  return { kind: "strings", words };
}
