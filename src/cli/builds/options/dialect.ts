import { type Dialect, dialects } from "../../../builder/dialect.ts";
import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import type { BuildInvocation } from "../request.ts";

/** Returns the dialect that `--docker`, `--no-docker`, `--target`, `--no-cache-filter` or `--build-context` selects, else `BOUGH_DOCKER`. */
export function chooseDialect({
  options: {
    docker: isDocker,
    "no-docker": isNotDocker,
    target,
    "no-cache-filter": uncached = [],
    "build-context": contexts = [],
  },
  runtime: { environment },
}: Pick<BuildInvocation, "options" | "runtime">): Dialect {
  const implied = [
    ...(isDocker ? ["docker"] : []),
    ...(target === undefined ? [] : ["target"]),
    ...(uncached.length === 0 ? [] : ["no-cache-filter"]),
    ...(contexts.length === 0 ? [] : ["build-context"]),
  ];
  const [chosen] = implied;
  if (isNotDocker && chosen !== undefined) {
    throw usageError(
      wording`${{ option: chosen }} and --no-docker cannot be used together`,
      chosen === "build-context"
        ? wording`Without ${{ option: "docker" }}, COPY --from is skipped.`
        : wording`Without ${{ option: "docker" }} every stage is built.`,
    );
  }
  if (isNotDocker) return dialects.default;
  if (chosen !== undefined) return dialects.docker;
  const { BOUGH_DOCKER: given = "" } = environment;
  if (given === "" || given === "0") return dialects.default;
  if (given === "1") return dialects.docker;
  throw usageError(
    `BOUGH_DOCKER must be 1 or 0, not ${JSON.stringify(given)}`,
    wording`1 means ${{ option: "docker" }}: build as docker build does.`,
  );
}
