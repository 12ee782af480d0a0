import type { Clock } from "../../src/clock.ts";
import type { Fetch } from "../../src/service/service.ts";
import { type Ended, runBough } from "../support/bough.ts";
import type { FakeService } from "./fake-service.ts";

/** Runs bough on a service. `runs`: the commands that the service has run for it. */
export async function boughOn(
  service: FakeService,
  words: readonly string[],
  { context, state, ...options }: { context: string; state: string; clock?: Clock; fetch?: Fetch },
): Promise<Ended & { runs: string[] }> {
  const before = service.state.instances.length;
  const ended = await runBough(["--url", service.url, "--token", "t0ken-t0ken", ...words], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
    ...options,
  });
  return { ...ended, runs: service.state.instances.slice(before).map(({ command }) => command) };
}
