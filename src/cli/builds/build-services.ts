/** The services of a build: `--platform-service` gives platforms one of their own. */
import { OtherPlatformError, requirePlatforms } from "../../builder/bases/base.ts";
import { requireNetworks } from "../../builder/commands/network.ts";
import type { SharedBuildState } from "../../builder/job.ts";
import { requireMounts } from "../../builder/mounts/mount-support.ts";
import type { ServiceSupport } from "../../builder/service-support.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { usageError, withPrefix } from "../../errors.ts";
import { defaultPlatform, formatPlatform, type Platform } from "../../image/platform.ts";
import { wording } from "../../messages/wording.ts";
import { RefusedTokenError } from "../../service/http/errors.ts";
import type { ResourcesLimits } from "../../service/wire/instance.ts";
import type { Log } from "../../terminal/log.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { requireAnnotatedPlatforms } from "../export/annotations.ts";
import type { Runtime } from "../process/runtime.ts";
import { requireLimits } from "../run/require-limits.ts";
import { chooseServiceFor } from "../service/choice.ts";
import type { Connection } from "../service/connection.ts";
import type { ChosenService } from "../service/connections.ts";
import type { BuildInputs } from "./inputs.ts";
import { unreadableLayout } from "./options/build-contexts.ts";
import type { BuildInvocation } from "./request.ts";

/** A service that a build uses, connected to. */
export interface BuildService extends ChosenService {
  connection: Connection;
  supports: ServiceSupport;
  /** Shared by all builds on this service; `undefined` if there is one. */
  sharedState: SharedBuildState | undefined;
  /** Says which platforms its messages are about, if there are several services. */
  log: Log;
}

/**
 * Returns the services that build the platforms, in the order of these. Throws a BoughError of kind `usage` for a
 * `--platform-service` that can't be used.
 */
export function chooseServices(
  {
    options: { "platform-service": profiles = new Map() },
    globals,
    runtime,
  }: Pick<BuildInvocation, "options" | "globals" | "runtime">,
  platforms: readonly Platform[],
): [ChosenService, ...ChosenService[]] {
  const chosen = new Map<string | undefined, ChosenService>();
  for (const platform of platforms) {
    const { profile, option } = profiles.get(formatPlatform(platform)) ?? {};
    const known = chosen.get(profile);
    const own = profile === undefined ? globals : globalsFor(profile, globals);
    chosen.set(profile, {
      ...{ globals: own, option, ...known },
      platforms: [...(known?.platforms ?? []), platform],
    });
    if (option !== undefined) requireProfile(option, own, runtime);
  }
  const other = profiles.entries().find(([name]) => !platforms.some((each) => formatPlatform(each) === name));
  if (other !== undefined) {
    const [name, { option }] = other;
    const all = [...platforms.map(formatPlatform), name].join(",");
    throw usageError(
      wording`${option}: ${{ option: "platform" }} does not have ${name}`,
      wording`Give all platforms: ${{ option: "platform" }} ${all}`,
    );
  }
  const [first, ...others] = chosen.values();
  if (first === undefined) return [{ platforms, globals, option: undefined }];
  if (others.length === 0) return [first];
  const labelled = (each: ChosenService) => ({
    ...each,
    label: each.platforms.map(formatPlatform).join(", "),
  });
  return [labelled(first), ...others.map(labelled)];
}

/** Address and token are the profile's alone: those of the command line belong to the other service. */
function globalsFor(profile: string, globals: GlobalOptions): GlobalOptions {
  return { ...globals, profile, url: undefined, token: undefined, project: undefined, local: false };
}

function requireProfile(option: string, globals: GlobalOptions, runtime: Runtime): void {
  try {
    chooseServiceFor(runtime, { ...globals, profileOption: "--platform-service" });
  } catch (error) {
    throw withPrefix(error, option);
  }
}

interface SupportedOptions {
  limits: ResourcesLimits | undefined;
  /** Set if there are annotations. */
  annotatedPlatforms: readonly Platform[] | undefined;
}

/** Rejects, before anything is built, if a service can't do what the Dockerfile or the options ask for. */
export async function requireSupport(
  services: readonly BuildService[],
  dockerfile: Dockerfile,
  { network, contexts }: Pick<BuildInputs, "network" | "contexts">,
  { limits, annotatedPlatforms }: SupportedOptions,
): Promise<void> {
  const targets = await Promise.all(
    services.map(async ({ connection: { service }, supports, platforms, option, globals }) => {
      try {
        const layout = contexts
          .values()
          .find((each) => each.kind === "image" && /^oci:/.test(each.reference));
        if (layout !== undefined && option !== undefined) throw unreadableLayout(layout.name);
        await requireNetworks(dockerfile, network, service, supports);
        await requireMounts(dockerfile, supports);
        await requireLimits(service, limits);
        if (platforms.length === 0 && annotatedPlatforms === undefined) return [];
        const own = await requirePlatforms(platforms, supports);
        return platforms.length === 0 ? [own] : platforms;
      } catch (error) {
        if (option === undefined) throw error;
        throw withPrefix(await adviseOn(error, { supports, profile: globals.profile }), option);
      }
    }),
  );
  if (annotatedPlatforms !== undefined) requireAnnotatedPlatforms(annotatedPlatforms, targets.flat());
}

/** Returns the error of a service that `--platform-service` names, with what to do about the profile. */
async function adviseOn(
  error: unknown,
  { supports, profile = "" }: { supports: ServiceSupport; profile: string | undefined },
): Promise<unknown> {
  if (error instanceof RefusedTokenError)
    return usageError(
      error.message,
      wording`${{ command: "auth", service: ["-p", profile] }} saves another token with the profile.`,
    );
  if (error instanceof OtherPlatformError && (await supports.platform()) === undefined)
    return usageError(
      error.message,
      wording`It does not say which platform it runs, and is taken for ${defaultPlatform}. ${wording`If it wants another token, ${{ command: "auth", service: ["-p", profile] }} saves one with the profile.`}`,
    );
  return error;
}
