import type { RegistryError } from "./registry-error.ts";

/** A transfer that has failed. */
interface Failure extends Pick<RegistryError, "status" | "isPassing"> {
  /** How long the registry asks to wait. */
  retryAfterMilliseconds?: number | undefined;
  /** 1 for the first attempt. */
  attempt: number;
  /** The number of further attempts that the user allows: `--retry`. */
  retries: number;
  /** In [0, 1). */
  random: number;
}

const firstWaitMilliseconds = 250;
const maxWaitMilliseconds = 10_000;
/** A registry that asks for more is not waited for. */
const maxAskedMilliseconds = 300_000;
/** A limit of requests passes for certain, and several uploads run into it together. */
const minRefusalRetries = 6;

/** Returns the time before the next attempt; `undefined` if there is none. */
export function waitBeforeRetry(failure: Failure): number | undefined {
  const { status, isPassing, retryAfterMilliseconds: asked = 0, attempt, retries, random } = failure;
  const isRefused = status === 429 || (status === 503 && asked > 0);
  const allowed = isRefused && retries > 0 ? Math.max(retries, minRefusalRetries) : retries;
  if (!isPassing || attempt > allowed || asked > maxAskedMilliseconds) return undefined;
  const full = Math.min(maxWaitMilliseconds, firstWaitMilliseconds * 2 ** (attempt - 1));
  return Math.max(asked, Math.round(full * (1 - random / 2)));
}

/** True for a status that may be another one at the next attempt. */
export function isPassingStatus(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && ![501, 505, 507].includes(status));
}

/** Returns the number of further attempts, from `BOUGH_RETRY`. */
export function retriesIn({ BOUGH_RETRY }: Readonly<Record<string, string | undefined>>): number {
  return /^\d{1,3}$/.test(BOUGH_RETRY ?? "") ? Number(BOUGH_RETRY) : 2;
}
