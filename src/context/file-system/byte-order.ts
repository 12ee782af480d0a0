/** Sorts names in place by the bytes of their UTF-8 form, the order that does not depend on any locale. */
export function sortByBytes(names: string[]): string[] {
  // UTF-16 order is the order of the bytes but for characters that take two units.
  return /[\uD800-\uDFFF]/.test(names.join(""))
    ? names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    : names.sort();
}
