/** What is known of a build before its first step. */
import { pathWithin } from "../../../context/file-system/display-path.ts";
import { isSecretName, isSecretValue } from "../../../dockerfile/secrets.ts";
import { type BuildDoor, type BuildOrigin, nameOfContext } from "../../../history/build-record.ts";
import { formatPlatform } from "../../../image/platform.ts";
import { isCi } from "../../../terminal/color.ts";
import { version } from "../../../version.ts";
import type { BuildInputs } from "../inputs.ts";
import type { BuildInvocation } from "../request.ts";

/** Returns the path of a Dockerfile as records have it. */
export function recordedDockerfile({
  context,
  dockerfile,
}: Pick<BuildInputs, "context" | "dockerfile">): string {
  return pathWithin(context.absolutePath, dockerfile.absolutePath) ?? dockerfile.path;
}

interface OriginOptions extends Pick<BuildInvocation, "options" | "runtime"> {
  session: string;
  service: string;
  bakeTarget: string | undefined;
  isBaked: boolean;
  /** True for the name of a variable that has a secret. */
  isSecret(name: string): boolean;
}

export function originOf(
  built: BuildInputs,
  { session, service, options, bakeTarget, isSecret, runtime, isBaked }: OriginOptions,
): BuildOrigin {
  const { location: context, target = null } = built;
  const dockerfile = recordedDockerfile(built);
  const { tag: tags = [], lock = null } = options;
  const named = tags[0] ?? nameOfContext({ context, dockerfile });
  const isHidden = (name: string, value: string) =>
    isSecretName(name) || isSecretValue(value) || isSecret(name);
  return {
    name:
      bakeTarget === undefined || tags.length > 0
        ? named
        : `${nameOfContext({ context, dockerfile: "" })} ${bakeTarget}`,
    door: doorOf(runtime, isBaked),
    isCi: isCi(runtime.environment.CI),
    ...{ session, context, dockerfile, target, bakeTarget: bakeTarget ?? null },
    platforms: built.platforms.map(formatPlatform),
    tags,
    dialect: built.dialect.name,
    usesCache: options["no-cache"] !== true,
    lock,
    service,
    buildArgs: [...built.buildArgs].map(([name, value]) => ({
      name,
      value: isHidden(name, value) ? null : value,
    })),
    version,
  };
}

function doorOf({ isPlugin, isCalledByAgent }: BuildInvocation["runtime"], isBaked: boolean): BuildDoor {
  if (isPlugin === true) return "docker";
  if (isCalledByAgent === true) return "mcp";
  return isBaked ? "bake" : "build";
}
