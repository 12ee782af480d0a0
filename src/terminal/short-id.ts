const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The ends of a UUID's groups. */
const lengths = [8, 13, 18, 23];

/**
 * Creates a function that shortens UUIDs to their first groups, as many as distinguish those of one table. All get the same
 * length, so that they are aligned. UUIDs that are not random (version 4) begin with a time, so they get at least two groups.
 */
export function createIdShortener(ids: readonly string[]): (id: string) => string {
  const distinct = [...new Set(ids)].filter((id) => uuid.test(id));
  const isRandom = distinct.every((id) => uuid.exec(id)?.[1] === "4");
  const length = lengths.find(
    (candidate) =>
      (isRandom || candidate > 8) &&
      new Set(distinct.map((id) => id.slice(0, candidate))).size === distinct.length,
  );
  return (id) => (uuid.test(id) ? id.slice(0, length) : id);
}
