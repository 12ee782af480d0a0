import { type Clock, steadyTime } from "../../clock.ts";

/**
 * Ids of images and files that the service has just made for this client. A service that reads from a copy of its database may know
 * them only after a moment. Ids that a user gave are not among them.
 */
export interface NewIds {
  add(id: string): void;
  /** True if the service may not know it yet. */
  has(id: string): boolean;
}

const unknownMilliseconds = 5000;

export function createNewIds(clock: Pick<Clock, "now" | "precise">): NewIds {
  /** In the order of their times. */
  const madeAt = new Map<string, number>();
  const isNew = (at: number) => steadyTime(clock) - at < unknownMilliseconds;

  return {
    add(id) {
      for (const [old, at] of madeAt) {
        if (isNew(at)) break;
        madeAt.delete(old);
      }
      madeAt.delete(id);
      madeAt.set(id, steadyTime(clock));
    },
    has: (id) => isNew(madeAt.get(id) ?? Number.NEGATIVE_INFINITY),
  };
}

/** The ids of a service in this process, which knows at once what it has made. */
export const noNewIds: NewIds = { add: () => undefined, has: () => false };
