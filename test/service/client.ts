import { systemClock } from "../../src/clock.ts";
import { Secret } from "../../src/secret.ts";
import { createService, type Service, type ServiceOptions } from "../../src/service/client.ts";
import type { ServiceNotice } from "../../src/service/http/attempt.ts";

export interface TestClient {
  service: Service;
  notices: ServiceNotice[];
  /** Interrupts the client, as Ctrl-C does. */
  interrupt: AbortController;
}

/** A client of the service at `url`; waits have no jitter. */
export function clientOf(
  url: string,
  { token, ...options }: Partial<Omit<ServiceOptions, "token">> & { token?: string } = {},
): TestClient {
  const notices: ServiceNotice[] = [];
  const interrupt = new AbortController();
  const service = createService({
    fetch,
    baseUrl: url,
    userAgent: "bough/0.0.0 (test)",
    clock: systemClock,
    signal: interrupt.signal,
    onNotice: (notice) => notices.push(notice),
    random: () => 0,
    ...(token === undefined ? {} : { token: Secret.of(token) }),
    ...options,
  });
  return { service, notices, interrupt };
}

/** Returns the reason of a rejected promise. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not reject");
}
