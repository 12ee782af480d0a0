import { BoughError } from "../../errors.ts";
import { createService } from "../../service/client.ts";
import { DeadlineError, withDeadline } from "../../service/http/deadline.ts";
import type { Account } from "../../service/profiles/account.ts";
import type { Profile } from "../../service/profiles/profile-text.ts";
import type { Runtime } from "../process/runtime.ts";
import { addressOf } from "./choice.ts";

const milliseconds = 10_000;

/** Asks the service of a profile which account its token belongs to, within ten seconds. */
export async function probe(
  { url, ...profile }: Pick<Profile, "url" | "token" | "project">,
  runtime: Runtime,
): Promise<Account> {
  if (url === undefined) throw new BoughError("it has no address");
  const { clock, signal, fetch } = runtime;
  let asked: Promise<Account> | undefined;
  try {
    return await withDeadline({ clock, milliseconds, parent: signal }, (limited) => {
      const service = createService({
        ...addressOf({ ...profile, url }, runtime),
        fetch,
        clock,
        signal: limited,
      });
      asked = service.whoami();
      return asked;
    });
  } catch (error) {
    // The call ends with the same signal, and its own error says which request failed, and how the service has responded.
    if (error instanceof DeadlineError && asked !== undefined) return await asked;
    throw error;
  }
}
