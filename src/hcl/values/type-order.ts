import { isCollection, isPrimitive, type Type } from "./types.ts";

/** Returns the indices of types, the most general ones first, otherwise in their own order. */
export function preferredOrder(types: readonly Type[]): number[] {
  const below = types.map((): number[] => []);
  const waiting = types.map(() => 0);
  for (let one = 0; one < types.length; one++)
    for (let other = one + 1; other < types.length; other++) {
      const order = compareTypes(types[one], types[other]);
      if (order === 0) continue;
      const [upper, lower] = order < 0 ? [one, other] : [other, one];
      below[upper]?.push(lower);
      waiting[lower] = (waiting[lower] ?? 0) + 1;
    }
  const queue = waiting.flatMap((count, index) => (count === 0 ? [index] : []));
  // It grows while it is read.
  for (const index of queue)
    for (const lower of below[index] ?? []) {
      const left = (waiting[lower] ?? 0) - 1;
      waiting[lower] = left;
      if (left === 0) queue.push(lower);
    }
  return queue;
}

/** Returns a negative number if the first type is more general, a positive one if the second one is, otherwise 0. */
function compareTypes(one: Type | undefined, other: Type | undefined): number {
  if (one === undefined || other === undefined) return 0;
  if (one.kind === "dynamic" || other.kind === "dynamic")
    return Number(one.kind === "dynamic") - Number(other.kind === "dynamic");
  if (isPrimitive(one) && isPrimitive(other)) {
    // Each of them can be written as a text.
    return Number(other.kind === "string") - Number(one.kind === "string");
  }
  if (isCollection(one) && isCollection(other) && one.kind === other.kind)
    return compareTypes(one.element, other.element);
  const rank = (type: Type) => generality[type.kind];
  const [left, right] = [rank(one), rank(other)];
  if (left !== undefined && right !== undefined && left.family === right.family && left.rank !== right.rank)
    return left.rank - right.rank;
  return compareParts(partsOf(one), partsOf(other));
}

/** A list can hold what a tuple has, and a map what an object has; a set loses the order of both. */
const generality: Partial<Record<Type["kind"], { family: string; rank: number }>> = {
  list: { family: "sequence", rank: 0 },
  tuple: { family: "sequence", rank: 1 },
  set: { family: "sequence", rank: 2 },
  map: { family: "mapping", rank: 0 },
  object: { family: "mapping", rank: 1 },
};

function partsOf(type: Type): ReadonlyMap<string, Type> | undefined {
  if (type.kind === "object") return type.attributes;
  if (type.kind === "tuple") return new Map(type.elements.map((each, index) => [String(index), each]));
  return undefined;
}

function compareParts(
  one: ReadonlyMap<string, Type> | undefined,
  other: ReadonlyMap<string, Type> | undefined,
): number {
  if (one === undefined || other === undefined || one.size !== other.size) return 0;
  const orders: number[] = [];
  for (const [name, type] of one) {
    if (!other.has(name)) return 0;
    orders.push(Math.sign(compareTypes(type, other.get(name))));
  }
  const hasUpper = orders.includes(-1);
  const hasLower = orders.includes(1);
  return hasUpper === hasLower ? 0 : hasUpper ? -1 : 1;
}
