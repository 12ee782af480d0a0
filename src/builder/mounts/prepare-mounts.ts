import { BoughError } from "../../errors.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { type ExpandedCommand, numericUser } from "../commands/command.ts";
import type { BuildJob } from "../job.ts";
import { detectLoss, retryAfterLoss } from "../operations/missing-image.ts";
import { addStaged } from "../staging/add-staged.ts";
import type { StagedLoan } from "../staging/lending.ts";
import type { StageState } from "../state/state.ts";
import { mountFields } from "./mount-request.ts";
import { whyUnsupported } from "./mount-support.ts";
import type { RunMounts } from "./run-mounts.ts";

/** The way in which a RUN gets its mounts from the service. */
interface Mounting {
  /** The stage for the RUN. If the service has no mounts, their contents are staged, too. */
  stage: StageState;
  addTo(request: InstanceRequest, step: { command: ExpandedCommand }): Promise<MountedRequest>;
  /** Works like the function of that name, also for the mounts' uploads and for images that are mounted. */
  retryAfterLoss<Result>(action: () => Promise<Result>): Promise<Result>;
}

interface MountedRequest {
  request: InstanceRequest;
  /** Loans of the mounts' files, to end once the operation is over. */
  loans: readonly StagedLoan[];
}

/** `hash`: the chain hash of the RUN's layer. `user`: as `requestOf` takes it. */
export async function prepareMounts(
  mounts: RunMounts | undefined,
  { hash, stage, user }: { hash: string; stage: StageState; user: string | undefined },
  build: BuildJob,
): Promise<Mounting> {
  const store = `/.bough-mounts-${hash.slice(0, 12)}`;
  const byScript = async (
    request: InstanceRequest,
    { command }: { command: ExpandedCommand },
  ): Promise<MountedRequest> => {
    const { mountByScript } = await import("./mount-script.ts");
    return {
      request: mountByScript(request, { mounts: mounts?.mounts ?? [], store, user, command }),
      loans: [],
    };
  };
  if (mounts === undefined) {
    const number = user === undefined ? undefined : numericUser(user);
    const isPlain = number !== undefined && !(await build.services.supports.userNumbers());
    const isRoot = number?.uid === 0 && (number.gid ?? 0) === 0;
    return {
      stage,
      async addTo(request, step) {
        if (!isPlain) return { request, loans: [] };
        const { uid: _, gid: __, ...asRoot } = request;
        return isRoot ? { request: asRoot, loans: [] } : byScript(request, step);
      },
      retryAfterLoss: (action) => retryAfterLoss(stage, build, action),
    };
  }
  // The Dockerfile's own mounts were checked before anything was run, but these may belong to a trigger.
  const support = await build.services.supports.mounts();
  const [reason] = mounts.mounts.flatMap(({ spec }) => whyUnsupported(spec.type, support) ?? []);
  if (reason !== undefined) throw new BoughError(reason, { kind: "usage" });
  const isLost = <Result>(action: () => Promise<Result>) =>
    mounts.losable.reduce((next, image) => () => detectLoss(image, build.services, next), action)();
  if (support.secrets) {
    const needed = { layer: stage.layer, staged: addStaged(stage.staged, mounts.files) };
    return {
      stage,
      async addTo(request) {
        const { fields, loans } = await mountFields(mounts, request.env ?? {}, build);
        return { request: { ...request, ...fields }, loans };
      },
      retryAfterLoss: (action) => isLost(() => retryAfterLoss(needed, build, action)),
    };
  }
  const { stageMounts } = await import("./mount-script.ts");
  const staged = await isLost(() => stageMounts(mounts, { store, stage }, build));
  return {
    stage: staged,
    addTo: byScript,
    retryAfterLoss: (action) => isLost(() => retryAfterLoss(staged, build, action)),
  };
}
