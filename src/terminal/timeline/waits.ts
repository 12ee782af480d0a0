/** What waited for what: requests to a service far away cost a round trip each, unless they are sent together. */
import { handoverMilliseconds, type RecordedBuild, type Span } from "./spans.ts";

type Recorded = Pick<RecordedBuild, "requests" | "activities">;

/**
 * Returns for each request what it waited for: the request or activity that ended last before it began. Nothing if that was long
 * before.
 */
export function findWaits(build: Recorded): Map<Span, Span> {
  const ended = inOrderOfEnds(build);
  const waits = new Map<Span, Span>();
  for (const request of build.requests) {
    const last = countEndedBefore(request, ended) - 1;
    // A request without duration has ended when it begins.
    const before = ended[last] === request ? ended[last - 1] : ended[last];
    if (before !== undefined && request.start - before.end <= handoverMilliseconds)
      waits.set(request, before);
  }
  return waits;
}

/**
 * Returns the requests and activities that followed one another up to the last one's end. What else was sent, ran beside them and
 * took no time of its own.
 */
export function findChain(build: Recorded): Span[] {
  const ended = inOrderOfEnds(build);
  const chain: Span[] = [];
  let next = ended.at(-1);
  while (next !== undefined) {
    chain.unshift(next);
    // A span without duration ends where it begins: only what comes before it in the order can be next.
    ended.length = Math.min(countEndedBefore(next, ended), ended.indexOf(next));
    next = ended.at(-1);
  }
  return chain;
}

function inOrderOfEnds({ requests, activities }: Recorded): Span[] {
  return [...activities, ...requests].sort((one, other) => one.end - other.end);
}

/** Returns the number of spans, in the order of their ends, that ended before another began. */
function countEndedBefore({ start }: Span, ended: readonly Span[]): number {
  let [low, high] = [0, ended.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ended[middle]?.end ?? 0) <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}
