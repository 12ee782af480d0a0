import { BoughError } from "../../errors.ts";

/** Parses a size such as `500M` to bytes. K, M, G and T are powers of 1024; 0 means no limit. */
export function parseSize(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const [, digits, unit = ""] = /^(\d{1,15})([KMGT])?i?B?$/i.exec(text) ?? [];
  if (digits === undefined) {
    throw new BoughError(`${option} takes a size, not ${JSON.stringify(text)}`, {
      kind: "usage",
      hint: `Write a number of bytes, or one with a unit: ${option} 500M.`,
    });
  }
  const bytes = Number(digits) * 1024 ** " KMGT".indexOf(unit.toUpperCase() || " ");
  return bytes === 0 ? Number.POSITIVE_INFINITY : bytes;
}
