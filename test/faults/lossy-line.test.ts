/** Builds over a line that loses answers and cuts connections: the build ends right, and nothing runs twice. */
import { expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
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
const steps = ["one", "two", "three", "four", "five"];
const files = Array.from({ length: 60 }, (_, index) => [`f${index}`, `content ${index}`] as const);

test.each([1, 2, 3, 4])(
  "5 RUN and 60 files over a line that loses one answer in ten (seed %d)",
  async (seed) => {
    const random = seededRandom(seed);
    // Waits before repeats end at once, deadlines when a connection is silent.
    const clock = createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);
    const fake = await startFakeService({ clock });
    fake.state.addImage("base:1");
    const front = await startFaultyFront(fake, {
      script: () => (random() < 0.1 ? lost[Math.floor(random() * lost.length)] : undefined),
      onStall: async (isGivenUp) => {
        while (!isGivenUp()) await clock.advance(1000);
      },
    });
    try {
      const context = temporaryDirectory();
      const runs = steps.map((step) => `RUN ${step}\n`).join("");
      writeFiles(context, {
        Dockerfile: `FROM base:1\nCOPY f* /app/\n${runs}`,
        ...Object.fromEntries(files),
      });
      const service = { ...fake, url: front.url };
      const place = { context, state: temporaryDirectory(), clock };
      const ended = await boughOn(service, ["build", ".", "--tag", "app:1"], place);
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
