const uuid = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** Ids that bough's messages name by their kind. */
const named = /(?<=\b(?:image|operation) )[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi;
/** The length of Docker's short ids. */
const shortLength = 12;
/** Lengths that distinguish more ids: UUIDs that are not random begin with a time. */
const lengths = [shortLength, 16, 20];

/** Returns the first 12 digits of a UUID, which commands take for the whole id. Other ids stay as they are. */
export function shortId(id: string): string {
  return firstDigits(id, shortLength);
}

/** Shortens the UUIDs of images and operations in a message. */
export function shortenIdsIn(text: string): string {
  return text.replace(named, shortId);
}

/** Creates a function that shortens the UUIDs of one table, so that they are distinct and aligned. */
export function createIdShortener(ids: readonly string[]): (id: string) => string {
  const distinct = [...new Set(ids)];
  const length = lengths.find(
    (candidate) => new Set(distinct.map((id) => firstDigits(id, candidate))).size === distinct.length,
  );
  return length === undefined ? (id) => id : (id) => firstDigits(id, length);
}

function firstDigits(id: string, length: number): string {
  return uuid.test(id) ? id.replaceAll("-", "").slice(0, length) : id;
}
