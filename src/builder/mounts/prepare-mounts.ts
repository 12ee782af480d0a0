import { BoughError } from "../../errors.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { detectLoss, retryAfterLoss } from "../cache/missing-image.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { addStaged } from "../staging/add-staged.ts";
import type { StagedLoan } from "../staging/lending.ts";
import type { Step } from "../steps/step.ts";
import { mountFields } from "./mount-request.ts";
import { mountSupport, mountsExtension, whyUnsupported } from "./mount-support.ts";
import type { RunMounts } from "./run-mounts.ts";

/** The way in which a RUN gets its mounts from the service. */
interface Mounting {
  /** The stage for the RUN. If the service has no mounts, their contents are staged, too. */
  stage: StageState;
  /** `user`: as `requestOf` takes it. */
  addTo(request: InstanceRequest, spec: Step, user: string | undefined): Promise<MountedRequest>;
  /** Works like the function of that name, also for the mounts' uploads and for images that are mounted. */
  retryAfterLoss<Result>(action: () => Promise<Result>): Promise<Result>;
}

interface MountedRequest {
  request: InstanceRequest;
  /** Loans of the mounts' files, to end once the operation is over. */
  loans: readonly StagedLoan[];
}

/** `hash`: the chain hash of the RUN's layer. */
export async function prepareMounts(
  mounts: RunMounts | undefined,
  { hash, stage }: { hash: string; stage: StageState },
  build: BuildJob,
): Promise<Mounting> {
  if (mounts === undefined)
    return {
      stage,
      addTo: async (request) => ({ request, loans: [] }),
      retryAfterLoss: (action) => retryAfterLoss(stage, build, action),
    };
  // The Dockerfile's own mounts were checked before anything was run, but these may belong to a trigger.
  const support = await mountSupport(build.service);
  const [reason] = mounts.mounts.flatMap(({ spec }) => whyUnsupported(spec.type, support) ?? []);
  if (reason !== undefined) throw new BoughError(reason, { kind: "usage" });
  const isLost = <Result>(action: () => Promise<Result>) =>
    mounts.losable.reduce((next, image) => () => detectLoss(image, build, next), action)();
  if ((await build.service.capabilities.extensions()).has(mountsExtension)) {
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
  const { mountByScript, stageMounts } = await import("./mount-script.ts");
  const store = `/.bough-mounts-${hash.slice(0, 12)}`;
  const staged = await isLost(() => stageMounts(mounts, { store, stage }, build));
  return {
    stage: staged,
    addTo: async (request, spec, user) => ({
      request: mountByScript(request, { mounts, store, user, command: spec.command }),
      loans: [],
    }),
    retryAfterLoss: (action) => isLost(() => retryAfterLoss(staged, build, action)),
  };
}
