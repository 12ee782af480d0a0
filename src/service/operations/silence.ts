import { type IdleTimer, startIdleTimer } from "../http/idle-timer.ts";
import type { PollingOptions } from "./polling.ts";

const silenceMilliseconds = 60_000;

/** Reports once a minute that a silent operation is still running. */
export function reportSilence(
  { clock, onNotice }: Pick<PollingOptions, "clock" | "onNotice">,
  operation: string,
): Pick<IdleTimer, "touch" | "stop"> {
  const began = clock.now();
  const onIdle = () => {
    const minutes = Math.round((clock.now() - began) / 60_000);
    onNotice({
      level: "info",
      text: `operation ${operation} is still running, after ${minutes} min`,
    });
    timer = startIdleTimer(clock, silenceMilliseconds, onIdle);
  };
  let timer = startIdleTimer(clock, silenceMilliseconds, onIdle);
  return { touch: () => timer.touch(), stop: () => timer.stop() };
}
