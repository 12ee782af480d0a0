import type { Clock } from "../../clock.ts";
import type { ServiceNotice } from "../http/attempt.ts";
import { type IdleTimer, startIdleTimer } from "../http/deadline.ts";

const silenceMilliseconds = 60_000;

/** Reports once a minute that a silent operation is still running. */
export function reportSilence(
  { clock, onNotice }: { clock: Clock; onNotice: (notice: ServiceNotice) => void },
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
