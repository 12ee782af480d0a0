import { BoughError } from "../../errors.ts";
import { createService } from "../../service/client.ts";
import { withDeadline } from "../../service/http/deadline.ts";
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
  return await withDeadline({ clock, milliseconds, parent: signal }, (limited) =>
    createService({ ...addressOf({ ...profile, url }, runtime), fetch, clock, signal: limited }).whoami(),
  );
}
