/** Builds over a line that loses answers, cuts connections or stalls: the build ends right, and nothing runs twice. */
import { expect, test } from "bun:test";
import type { Clock } from "../../src/clock.ts";
import type { Fetch } from "../../src/service/service.ts";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type Fault, faults } from "../fake-service/faults.ts";
import { startFaultyFront } from "../fake-service/faulty-front.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { seededRandom } from "../support/random.ts";

const named = (name: string): Fault => faults[name] ?? { kind: "refused" };
const lost = [
  "reset, the request unread",
  "reset once the request is done",
  "reset within the answer's body",
  "closed within the answer's body",
].map(named);
/** Waits before repeats end at once, deadlines when a connection is silent. */
const createClock = () => createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);
const steps = ["one", "two", "three", "four", "five"];
const files = Array.from({ length: 60 }, (_, index) => [`f${index}`, `content ${index}`] as const);

test.each([1, 2, 3, 4])(
  "5 RUN and 60 files over a line that loses one answer in ten (seed %d)",
  async (seed) => {
    const random = seededRandom(seed);
    const clock = createClock();
    const fake = await startFakeService({ clock });
    fake.state.addImage("base:1");
    const front = await startFaultyFront(fake, {
      script: () => (random() < 0.1 ? lost[Math.floor(random() * lost.length)] : undefined),
      onStall: async (isGivenUp) => {
        while (!isGivenUp()) await clock.advance(1000);
      },
    });
    try {
      const ended = await build({ ...fake, url: front.url }, clock);
      expect(ended).toMatchObject({ exitCode: 0 });
      expect(ended.runs).toEqual(steps);
      const placed = Object.values(fake.state.instances[0]?.files ?? {});
      expect(placed).toHaveLength(files.length);
      // Some requests were sent again.
      expect(fake.requestsTo("POST /v1/files").length).toBeGreaterThan(files.length);
    } finally {
      await front.close();
      await fake.close();
    }
  },
);

test.each(["requests", "answers"])(
  "a line that stalls for 20 s with %s: each is awaited, and nothing is sent twice",
  async (what) => {
    const clock = createClock();
    const fake = await startFakeService({ clock });
    fake.state.addImage("base:1");
    const underWay = new Set<{ isAlone: boolean }>();
    const sent: string[] = [];
    let stalls = 0;
    // Time passes for all requests at once. So only one that is alone, from its start, is held up.
    const stall = async ({ isAlone }: { isAlone: boolean }) => {
      if (!isAlone) return;
      stalls++;
      await clock.advance(20_000);
    };
    const line: Fetch = async (input, init) => {
      const { method = "GET", url } = typeof input === "string" ? { ...init, url: input } : input;
      const { pathname, searchParams } = new URL(url);
      sent.push(`${method} ${pathname} ${searchParams.get("tag") ?? ""}`);
      const own = { isAlone: underWay.size === 0 };
      for (const other of underWay) other.isAlone = false;
      underWay.add(own);
      try {
        if (what === "requests") await stall(own);
        const answer = await fetch(input, init);
        if (what === "answers") await stall(own);
        return answer;
      } finally {
        underWay.delete(own);
      }
    };
    try {
      const ended = await build(fake, clock, line);
      expect(ended).toMatchObject({ exitCode: 0 });
      expect(ended.runs).toEqual(steps);
      // A list whose answer is held up beside another may be asked for again, in case the service answers one connection at a time.
      const others = /^(GET \/v1\/images|POST \/v1\/(files|instances)) /;
      const once = sent.filter((call) => !others.test(call));
      expect(once.sort()).toEqual([...new Set(once)].sort());
      expect(sent.filter((call) => call.startsWith("POST /v1/files "))).toHaveLength(files.length);
      expect(stalls).toBeGreaterThanOrEqual(steps.length);
    } finally {
      await fake.close();
    }
  },
);

function build(service: FakeService, clock: Clock, fetch?: Fetch) {
  const context = temporaryDirectory();
  const runs = steps.map((step) => `RUN ${step}\n`).join("");
  writeFiles(context, {
    Dockerfile: `FROM base:1\nCOPY f* /app/\n${runs}`,
    ...Object.fromEntries(files),
  });
  const place = { context, state: temporaryDirectory(), clock, ...(fetch && { fetch }) };
  return boughOn(service, ["build", ".", "--tag", "app:1"], place);
}
