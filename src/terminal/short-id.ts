const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Where the groups of a UUID end. */
const lengths = [8, 13, 18, 23];

/**
 * Shows UUIDs by their first groups: as many as tell those of one table apart. All have one length, so that they stay in line.
 * Those that are not random (version 4) begin with the time of their making: one group may be many's.
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
