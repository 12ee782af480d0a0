import { BoughError } from "../../errors.ts";
import type { HostFiles, InstanceFile } from "../../service/wire/file.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { InstanceMount } from "../../service/wire/mount.ts";
import { type ExpandedCommand, numericUser } from "../commands/command.ts";
import type { BuildJob } from "../job.ts";
import { detectEviction, retryAfterEviction } from "../operations/evicted-image.ts";
import type { FileFeatures } from "../service-support.ts";
import { hostFilesOf, readsHostFiles } from "../staging/host-files.ts";
import { allFeatures, featuresFor, instanceEntries, instanceFiles } from "../staging/request-fields.ts";
import { uploadStaged } from "../staging/upload.ts";
import { missingSecret } from "../state/secrets.ts";
import { addStaged, type Staged } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { cacheIdOf, type MountSpec } from "./mount-spec.ts";
import { whyUnsupported } from "./mount-support.ts";
import type { RunMount, RunMounts } from "./run-mounts.ts";

/** The way in which the service provides a RUN's mounts. */
interface Mounting {
  /** The stage for the RUN. If the service has no mounts, their contents are staged, too. */
  stage: StageState;
  addTo(request: InstanceRequest, step: { command: ExpandedCommand }): Promise<InstanceRequest>;
  /** Works like the function of that name, also for the mounts' uploads and for images that are mounted. */
  retryAfterEviction<Result>(action: () => Promise<Result>): Promise<Result>;
}

/** `hash`: the chain hash of the RUN's layer. `user`: as `processFields` takes it. */
export async function prepareMounts(
  mounts: RunMounts | undefined,
  { hash, stage, user }: { hash: string; stage: StageState; user: string | undefined },
  build: BuildJob,
): Promise<Mounting> {
  const store = `/.bough-mounts-${hash.slice(0, 12)}`;
  const byScript = async (
    request: InstanceRequest,
    { command }: { command: ExpandedCommand },
  ): Promise<InstanceRequest> => {
    const { mountByScript } = await import("./mount-script.ts");
    return mountByScript(request, { mounts: mounts?.mounts ?? [], store, user, command });
  };
  if (mounts === undefined) {
    const number = user === undefined ? undefined : numericUser(user);
    const isPlain = number !== undefined && !(await build.services.supports.userNumbers());
    const isRoot = number?.uid === 0 && (number.gid ?? 0) === 0;
    return {
      stage,
      async addTo(request, step) {
        if (!isPlain) return request;
        const { uid: _, gid: __, ...asRoot } = request;
        return isRoot ? asRoot : byScript(request, step);
      },
      retryAfterEviction: (action) => retryAfterEviction(stage, build, action),
    };
  }
  for (const { spec } of mounts.mounts) requireGiven(spec, build);
  // The Dockerfile's own mounts were checked before anything was run, but these may belong to a trigger.
  const support = await build.services.supports.mounts();
  const [reason] = mounts.mounts.flatMap(({ spec }) => whyUnsupported(spec.type, support) ?? []);
  if (reason !== undefined) throw new BoughError(reason, { kind: "usage" });
  const detectEvictions = <Result>(action: () => Promise<Result>) =>
    mounts.evictable.reduce((next, image) => () => detectEviction(image, build.services, next), action)();
  if (support.secrets) {
    const needed = { layer: stage.layer, staged: addStaged(stage.staged, mounts.files) };
    return {
      stage,
      addTo: async (request) => ({ ...request, ...(await mountFields(mounts, request.env ?? {}, build)) }),
      retryAfterEviction: (action) => detectEvictions(() => retryAfterEviction(needed, build, action)),
    };
  }
  const { stageMounts } = await import("./mount-script.ts");
  const staged = await detectEvictions(() => stageMounts(mounts, { store, stage }, build));
  return {
    stage: staged,
    addTo: byScript,
    retryAfterEviction: (action) => detectEvictions(() => retryAfterEviction(staged, build, action)),
  };
}

/** Throws for a required secret or agent that is not given. Called only for a command that has to be run, as in BuildKit. */
function requireGiven(spec: MountSpec, { asked: { secrets } }: BuildJob): void {
  if (spec.type !== "secret" && spec.type !== "ssh") return;
  const given = spec.type === "secret" ? secrets.values : secrets.agents;
  if (spec.required && !given.has(spec.id)) throw missingSecret(spec.type, spec.id, [...given.keys()]);
}

/** Returns the request's fields for mounts, for a service with the extension `mounts`. Uploads contents that it can't read itself. */
async function mountFields(
  { mounts, files }: RunMounts,
  env: Readonly<Record<string, string>>,
  build: BuildJob,
): Promise<Pick<InstanceRequest, "mounts" | "env">> {
  const isHere = readsHostFiles(files, build.services);
  const ids = isHere || files.size === 0 ? new Map<string, string>() : await uploadStaged(files, build);
  const features = await featuresFor(files, build.services.supports);
  const generations = await build.services.supports.cacheGenerations();
  const agent = mounts.find(({ spec }) => spec.type === "ssh")?.spec.target;
  const made: InstanceMount[] = [];
  for (const mount of mounts) {
    const hostFiles =
      isHere && mount.source?.kind === "files"
        ? await hostFilesOf(mount.source.files, build, "/")
        : undefined;
    const one = instanceMount(mount, { ids, features, hostFiles, generations }, build);
    if (one !== undefined) made.push(one);
  }
  // BuildKit sets it with or without an agent.
  const agents = agent === undefined ? {} : { SSH_AUTH_SOCK: agent };
  return { mounts: made, env: { ...agents, ...env, ...emptySecrets(mounts, build) } };
}

/** As in BuildKit, the variable of a secret that is not given is empty, whatever ENV and ARG say. */
function emptySecrets(mounts: readonly RunMount[], { asked: { secrets } }: BuildJob): Record<string, string> {
  return Object.fromEntries(
    mounts.flatMap(({ spec }) =>
      spec.type === "secret" && spec.env !== undefined && !secrets.values.has(spec.id)
        ? [[spec.env, ""]]
        : [],
    ),
  );
}

/** Returns `undefined` for a secret or agent that was not given. */
function instanceMount(mount: RunMount, sent: SentFiles, build: BuildJob): InstanceMount | undefined {
  const { spec } = mount;
  const { secrets } = build.asked;
  switch (spec.type) {
    case "bind":
      return bindMount(spec, mount.source, sent);
    case "cache":
      return cacheMount(spec, mount.source, sent, build);
    case "tmpfs":
      return { type: "tmpfs", target: spec.target, ...(spec.size !== undefined && { size: spec.size }) };
    case "secret": {
      const value = secrets.values.get(spec.id);
      if (value === undefined) return undefined;
      const { id: _, required: __, env, isFile, ...own } = spec;
      return { ...own, value, ...(!isFile && { isFile }), ...(env !== undefined && { env }) };
    }
    case "ssh": {
      const agent = secrets.agents.get(spec.id);
      const { id: _, required: __, ...own } = spec;
      return agent === undefined ? undefined : { ...own, agent };
    }
  }
}

type SpecOf<Type extends MountSpec["type"]> = Extract<MountSpec, { type: Type }>;

function bindMount(
  { target, source: path, readonly }: SpecOf<"bind">,
  source: RunMount["source"],
  sent: SentFiles,
): InstanceMount {
  if (source === undefined) throw new Error(`nothing to mount at ${target}`);
  if (source.kind === "image") return { type: "bind", target, image: source.image, source: path, readonly };
  const entries = instanceEntries(source.files, sent.hostFiles === undefined ? sent.features : allFeatures);
  const contents = {
    ...filesField(source.files, sent),
    ...(Object.keys(entries).length > 0 && { entries }),
  };
  return { type: "bind", target, ...contents, readonly };
}

function cacheMount(
  spec: SpecOf<"cache">,
  source: RunMount["source"],
  sent: SentFiles,
  { asked, services: { carriedCaches } }: BuildJob,
): InstanceMount {
  const named = { ...spec, id: cacheIdOf(spec.id, asked.buildArgs) };
  const { from: _, source: path, readonly, ...own } = named;
  const generation = sent.generations ? asked.cacheGeneration : undefined;
  // Where caches have no generations, they have no realms either.
  const realm = sent.generations ? asked.cacheRealm : undefined;
  const image = source?.kind === "image" ? { image: source.image } : {};
  const place = path === "/" && source === undefined ? {} : { source: path };
  // A cache that an image fills starts with the image's files, not with its contents elsewhere.
  const carried = source === undefined ? carriedCaches?.use(named) : undefined;
  const contents = asked.cacheGeneration === undefined ? carried : undefined;
  return {
    ...{ ...own, ...image, ...place },
    ...(readonly && { readonly }),
    ...(generation !== undefined && { generation }),
    ...(realm !== undefined && { realm }),
    ...(contents && { contents }),
  };
}

/** The files of mounts as the service gets them. */
interface SentFiles {
  /** By SHA-256. */
  ids: ReadonlyMap<string, string>;
  features: FileFeatures;
  hostFiles: HostFiles | undefined;
  /** True if the service keeps the caches of a build apart. */
  generations: boolean;
}

function filesField(
  staged: Staged,
  { ids, features, hostFiles }: SentFiles,
): { files: Record<string, InstanceFile> } | { host_files: HostFiles } {
  if (hostFiles !== undefined) return { host_files: hostFiles };
  const files = instanceFiles(staged, ids, features);
  // The paths of links are always absolute: these begin at the target.
  for (const file of Object.values(files)) file.links &&= file.links.map((path) => `/${path}`);
  return { files };
}
