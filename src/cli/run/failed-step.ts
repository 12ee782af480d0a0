/** The step at which a build failed, which is stored in the build's session so that other commands can run in its place. */
import type { FailedStepError, StepEnvironment } from "../../builder/operations/failed-step.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { HostFiles } from "../../service/wire/file.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import type { Store } from "../../store/store.ts";

type StepFields = Pick<
  InstanceRequest,
  "image" | "cwd" | "env" | "files" | "entries" | "copies" | "mounts" | "networking" | "extra_hosts"
>;

/** A failed step, in whose place another command can run. */
export interface FailedStep {
  fields: StepFields;
  /** The user as `processFields` takes it. */
  user: string | undefined;
  /** The branch of the layer that the step began with. */
  branch: string;
  /** The image with the changes of the failed command, if the service kept one. */
  result: string | undefined;
}

/** Returns a failed step with its secrets: the result must not leave this process. */
export function failedStepOf(
  { branch, result }: FailedStepError,
  { request, user }: StepEnvironment,
): FailedStep {
  const { image, cwd, env, files, entries, copies, mounts, networking, extra_hosts } = request;
  return {
    fields: {
      ...{ image, cwd },
      ...(env && { env }),
      ...(files && { files }),
      ...(entries && { entries }),
      ...(copies && { copies }),
      ...(mounts && { mounts: mounts.map(withListedFiles) }),
      ...(networking && { networking }),
      ...(extra_hosts && { extra_hosts }),
    },
    user,
    branch,
    result,
  };
}

/** Returns a mount with its files listed now, since only the running build can list them. */
function withListedFiles(mount: InstanceMount): InstanceMount {
  if (!("host_files" in mount)) return mount;
  const files = [...mount.host_files];
  return { ...mount, host_files: new HostFiles(() => files) };
}

/** Stores the step without its secrets. Returns descriptions of what is left out. */
export function saveFailedStep(
  session: string,
  error: FailedStepError,
  environment: StepEnvironment,
  store: Store,
): string[] {
  const step = failedStepOf(error, environment);
  const { env = {}, mounts = [] } = step.fields;
  const secrets = secretsAmong(Object.entries(env));
  const isSecret = ([name, value]: [string, string]) => secrets.has(name) || secrets.mask(value) !== value;
  const hidden = Object.entries(env).filter(isSecret);
  const kept = mounts.filter(({ type }) => type !== "secret" && type !== "ssh");
  const fields = {
    ...step.fields,
    env: Object.fromEntries(Object.entries(env).filter((variable) => !isSecret(variable))),
    ...(mounts.length === 0 ? {} : { mounts: kept }),
  };
  store.failedSteps.set(session, JSON.stringify({ ...step, fields }));
  return [
    ...hidden.map(([name]) => name),
    ...(kept.length < mounts.length ? ["what --secret and --ssh provide"] : []),
    ...(environment.lacksMounts ? ["its --mount"] : []),
  ];
}

export function requireFailedStep(session: string, store: Pick<Store, "failedSteps">): FailedStep {
  const kept = store.failedSteps.get(session);
  if (kept !== undefined) return JSON.parse(kept) as FailedStep;
  const other = store.failedSteps.latestSession();
  throw usageError(
    `the latest build of session ${session} has not failed at a step`,
    other === undefined
      ? wording`A failed build prints the line to paste: ${{ command: "shell", options: [{ option: "failed-step" }], session: { placeholder: "build:<hash>" }, isLine: true }}`
      : wording`${{ command: "shell", options: [{ option: "failed-step" }], session: other }} opens the step at which that session's build has failed.`,
  );
}
