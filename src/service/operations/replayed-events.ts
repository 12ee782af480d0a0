/**
 * Recognizes events that a service sends again on a new connection: some ignore `Last-Event-Id` and begin with the first event.
 * Needed only for events without a number.
 */

export interface ReplayedEvents {
  /** Has to be called when a connection begins. */
  connect(): void;
  /**
   * Says what an event is. `after a gap`: the service has not begun with the first event, and an event without an id does not show
   * how many are missing. Events that only begin like the earlier ones are recognized after as many as there were: some of those
   * taken for replayed were new.
   */
  take(event: { id: string | undefined; data: string }): "new" | "replayed" | "after a gap";
}

export function createReplayedEvents(): ReplayedEvents {
  let first: string | undefined;
  let count = 0;
  /** Hashes of all earlier events, and of those that have come again on this connection. */
  let earlier = 0n;
  let again = 0n;
  /** Events that are still to come again; `undefined` until the first event of the connection. */
  let left: number | undefined = 0;
  return {
    connect() {
      left = count === 0 ? 0 : undefined;
      again = 0n;
    },
    take({ id, data }) {
      const text = `${id ?? ""} ${data}`;
      first ??= text;
      const isNext = left !== undefined;
      left ??= text === first ? count : 0;
      if (left > 0) {
        left -= 1;
        again = Bun.hash.xxHash64(text, again);
        return left > 0 || again === earlier ? "replayed" : "after a gap";
      }
      count += 1;
      earlier = Bun.hash.xxHash64(text, earlier);
      return isNext || id !== undefined ? "new" : "after a gap";
    },
  };
}
