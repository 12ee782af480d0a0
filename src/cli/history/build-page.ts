/** Collects the data of the page about a build, and renders it. */
import { measure } from "../../builder/build.ts";
import { messageOf } from "../../errors.ts";
import { type BuildRecord, type BuildWithOutput, inOrder } from "../../history/build-record.ts";
import { openExistingHistory } from "../../history/history-database.ts";
import { renderBuildReport } from "../../history/report/report.ts";
import { directorySizes, type ImageSizes, type SizedFile } from "../../history/report/report-data.ts";

import type { Surroundings } from "../command-line/command.ts";
import { findLayers, sizeOf } from "../images/render-inspection.ts";

import { stateDirectory } from "../process/runtime.ts";
import { findDescription } from "../references/image-argument.ts";
import { chooseServiceFor, serviceName } from "../service/choice.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import { listBuilds } from "../sessions/past-builds.ts";
import { earlierBuild, requireRecord, withSizes } from "./find-build.ts";

/** Renders the page. Data that is no longer available, such as a removed image, is left out. */
export async function renderBuildPage(
  { record, outputs }: BuildWithOutput,
  invocation: Surroundings,
): Promise<string> {
  const { log } = invocation;
  const { sized, earlier } = compareWithPast(record, invocation);
  const measured = await measureBuild(sized, invocation).catch((error: unknown) => {
    log.debug(`the image can't be measured: ${messageOf(error)}`);
    return undefined;
  });
  return renderBuildReport({ outputs, earlier, sizes: measured?.sizes, record: measured?.record ?? sized });
}

/** Returns the build with sizes from earlier builds, and the build before it. */
function compareWithPast(
  record: BuildRecord,
  { runtime, log }: Surroundings,
): { sized: BuildRecord; earlier: BuildRecord | undefined } {
  try {
    const home = stateDirectory(runtime);
    using history = openExistingHistory(home);
    if (history === undefined) return { sized: record, earlier: undefined };
    const builds = listBuilds(history, home);
    const before = earlierBuild({ ...record.origin, ...record }, builds);
    return {
      sized: withSizes(record, builds, history),
      earlier: before && withSizes(requireRecord(before, history), builds, history),
    };
  } catch (error) {
    log.debug(messageOf(error));
    return { sized: record, earlier: undefined };
  }
}

/** The maximum number of files of a layer that are counted by directory. Smaller files count only in the layer's size. */
const maxFilesOfLayer = 50_000;

/** Measures the image and the layers of steps, if the service of the build has them and reports sizes. */
async function measureBuild(
  record: BuildRecord,
  invocation: Surroundings,
): Promise<{ sizes: ImageSizes | undefined; record: BuildRecord } | undefined> {
  const { steps, result, origin } = record;
  const choice = chooseServiceFor(invocation.runtime, invocation.globals);
  if (serviceName(choice) !== origin.service || result === null) return undefined;
  await using connection = await connectQuietly(invocation);
  if (!(await connection.service.capabilities.extensions()).has("changes")) return undefined;
  const sizes = await measureImage(result.image, connection);
  if (steps.every(({ addedBytes, image }) => addedBytes !== null || image === null)) return { sizes, record };
  const added = await measure(inOrder(steps), connection.service);
  return {
    sizes,
    record: {
      ...record,
      steps: steps.map((step) => ({ ...step, addedBytes: step.addedBytes ?? added.get(step) ?? null })),
    },
  };
}

async function measureImage(image: string, connection: Connection): Promise<ImageSizes> {
  const { service } = connection;
  const { origin } = await findDescription(image, connection);
  const { layers } = await findLayers(image, origin.history ?? [], connection);
  const files: SizedFile[] = [];
  for (const [at, { id }] of layers.entries()) {
    if (id === undefined) continue;
    const { changes } = await service.listChanges(image, id, maxFilesOfLayer);
    for (const { kind, type, path, size } of changes)
      if (kind !== "deleted" && type !== "directory") files.push({ path, bytes: size, layer: at });
  }
  const shown = layers.map((layer) => ({
    instruction: layer.instruction,
    isBase: layer.isBase === true,
    bytes: sizeOf(layer),
    hiddenBytes: layer.changes?.hidden.bytes ?? 0,
  }));
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  return {
    bytes: sum(shown.map(({ bytes }) => bytes)),
    hiddenBytes: sum(shown.map(({ hiddenBytes }) => hiddenBytes)),
    layers: shown,
    root: directorySizes(files),
  };
}
