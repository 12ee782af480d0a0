import { accountRows, idOf } from "../../account-rows.ts";
import { createImageInspection, type ImageInspection } from "../../builder/cache/image-inspection.ts";
import { recordedConfiguration } from "../../builder/cache/image-records.ts";
import { type ExpandedCommand, numericUser, processFields } from "../../builder/commands/command.ts";
import { supportOf } from "../../builder/service-support.ts";
import { BoughError } from "../../errors.ts";
import { type ImageConfig, variablesIn } from "../../image/config.ts";
import { wording } from "../../messages/wording.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { Connection } from "../service/connection.ts";
import type { FailedStep } from "./failed-step.ts";

/** The options of the command line about the process. */
export interface RunProcessOptions {
  command: ExpandedCommand;
  env: Record<string, string>;
  /** Absolute; `undefined` for the image's, else `/`. */
  cwd: string | undefined;
  /** The user, as in a USER instruction; `undefined` for the image's, else root. */
  user: string | undefined;
  /** `--no-config`: ignores the image's ENV, WORKDIR and USER. */
  ignoresConfig: boolean;
}

/** The command, user, working directory and variables of a request. */
export type ProcessSettings = Pick<
  InstanceRequest,
  "command" | "args" | "shell" | "uid" | "gid" | "env" | "ignore_config"
> & { cwd: string };

/**
 * Combines the command line with ENV, WORKDIR and USER of the failed step or of the image, from bough's own records, else from the
 * service. The command line takes precedence.
 */
export async function resolveProcessSettings(
  { command, env, cwd, user, ignoresConfig, step }: RunProcessOptions & { step: FailedStep | undefined },
  image: string,
  { service, store }: Connection,
): Promise<ProcessSettings> {
  const inspection = createImageInspection(service, supportOf(service), store.imageMetadata);
  if (step !== undefined) {
    const resolvedUser = user === undefined ? step.user : await findUser(user, image, inspection);
    const { env: variables, cwd: directory } = step.fields;
    return { ...processFields(command, resolvedUser), env: { ...variables, ...env }, cwd: cwd ?? directory };
  }
  const directory = cwd ?? "/";
  if (ignoresConfig) {
    // A service without `configure` has no image variables to ignore.
    const isKept = (await service.capabilities.extensions()).has("configure");
    const process = processFields(command, await findUser(user, image, inspection));
    return { ...process, env, cwd: directory, ...(isKept ? { ignore_config: true } : {}) };
  }
  const noted = recordedConfiguration(image, store);
  const config = noted ?? (await fetchConfiguration(image, service));
  const resolvedUser = await findUser(user ?? (config.User || undefined), image, inspection);
  return {
    ...processFields(command, resolvedUser),
    env: { ...(noted === undefined ? {} : Object.fromEntries(variablesIn(noted))), ...env },
    cwd: cwd ?? (config.WorkingDir || directory),
  };
}

/** Reads the configuration from the service, which sets the variables itself. */
async function fetchConfiguration(image: string, service: Connection["service"]): Promise<ImageConfig> {
  const found = await service.findImage(image);
  return found === undefined || found === "unsupported" ? {} : (found.config ?? {});
}

/** Returns the user by number if the image's `/etc/passwd` can be read, else by name, which `su` in the image resolves. */
async function findUser(
  user: string | undefined,
  image: string,
  inspection: Pick<ImageInspection, "readTextFile">,
): Promise<string | undefined> {
  if (user === undefined || numericUser(user) !== undefined) return user;
  const [name = "", group = ""] = user.split(":", 2);
  const passwd = await inspection.readTextFile(image, "/etc/passwd");
  if (passwd === "unsupported") return user;
  const uid = idOf(name) ?? (name === "root" ? 0 : numberIn(passwd, name));
  if (uid === undefined) throw unknown("user", name);
  if (group === "") return String(uid);
  const groups = await inspection.readTextFile(image, "/etc/group");
  const gid = idOf(group) ?? numberIn(groups, group);
  if (gid === undefined) throw unknown("group", group);
  return `${uid}:${gid}`;
}

/** Returns the number of a name in `/etc/passwd` or `/etc/group`. */
function numberIn(table: string | undefined, name: string): number | undefined {
  return idOf(accountRows(table ?? "").find((fields) => fields[0] === name)?.[2]);
}

function unknown(what: string, name: string): BoughError {
  return new BoughError(`the image has no ${what} ${name}`, {
    hint: wording`Give a number: -u 1000:1000.${wording` ${{ option: "no-config" }} runs as root.`}`,
  });
}
