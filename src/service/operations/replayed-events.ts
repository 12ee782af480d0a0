/**
 * Recognizes events that a service sends again on a new connection: some ignore `Last-Event-Id` and begin with the first event.
 * Needed for events without a number; numbers show by themselves what was seen before.
 */

export interface ReplayedEvents {
  /** Has to be called when a connection begins. */
  connect(): void;
  /**
   * Says what an event is. `after a gap`: the service has not begun with the first event, and an event without an id does not show
   * how many are missing.
   */
  take(event: { id: string | undefined; data: string }): "new" | "replayed" | "after a gap";
}

export function createReplayedEvents(): ReplayedEvents {
  let first: string | undefined;
  let count = 0;
  /** Events that are still to come again; `undefined` until the first event of the connection. */
  let left: number | undefined = 0;
  return {
    connect() {
      left = count === 0 ? 0 : undefined;
    },
    take({ id, data }) {
      const text = `${id ?? ""} ${data}`;
      first ??= text;
      const isNext = left !== undefined;
      left ??= text === first ? count : 0;
      if (left > 0) {
        left -= 1;
        return "replayed";
      }
      count += 1;
      return isNext || id !== undefined ? "new" : "after a gap";
    },
  };
}
