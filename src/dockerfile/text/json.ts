import { trimStart } from "./space.ts";

type StringArray =
  | { kind: "strings"; words: string[] }
  /** A JSON array with other values than strings, which Docker refuses. */
  | { kind: "not-strings" }
  /** Anything else, which Docker treats as plain text, even if only a quote is missing. */
  | { kind: "not-an-array" };

/** Parses the JSON form of an instruction's arguments. */
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
