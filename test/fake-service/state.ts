/** The fake service's memory: images, files, operations. */
import type { Clock } from "../../src/clock.ts";
import type { FileRecord } from "../../src/service/wire/file.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type {
  LimitHit,
  OperationEvent,
  OperationKind,
  OperationRecord,
} from "../../src/service/wire/operation.ts";

/** The outcome of a RUN. By default it exits 0 at once without output, and makes a new image. */
export interface RunOutcome {
  exitCode?: number;
  stdout?: string | Uint8Array;
  stderr?: string | Uint8Array;
  /** Output in separate events; otherwise each stream is one event. */
  chunks?: readonly RunChunk[];
  /** The command's time after its chunks. */
  delayMs?: number;
  timedOut?: boolean;
  limitsHit?: LimitHit[];
  /** The service could not run the command: the operation ends as FAILED. */
  error?: string;
  /** `unchanged`: the image that it started from. */
  image?: "unchanged";
  /** Bytes of each stream that are kept in the record. Default: the request's, else 65536. */
  truncateAt?: number;
  /** The command ends when this resolves, for tests that hold a command back. */
  until?: Promise<unknown>;
  /** Writes the standard input to the output when the input is closed, and ends. For other processes of an instance. */
  catsInput?: boolean;
}

export interface RunChunk {
  stream: "stdout" | "stderr";
  data: string | Uint8Array;
  /** The wait before the chunk. */
  delayMs?: number;
  /** The chunk comes after this resolves, for tests that hold output back. */
  after?: Promise<unknown>;
}

/** `count` is 0 for the first instance. */
export type RunScript = (request: InstanceBody, count: number) => RunOutcome | undefined;

export interface FakeFile extends FileRecord {
  /** Up to 16 MiB; larger files are only hashed. */
  content?: Uint8Array;
}

export interface FakeOperation {
  record: OperationRecord;
  events: OperationEvent[];
  /** Resolves with the next change of the events. */
  changed: Promise<void>;
  notify(): void;
  request?: InstanceBody;
  /** Other processes of the instance by `spid`. */
  processes: Map<number, FakeProcess>;
}

export interface FakeProcess {
  outcome: RunOutcome;
  input: string;
  isInputOpen: boolean;
  hasEnded: boolean;
}

/** A file of an image for the inspect routes. */
export interface FakeTreeEntry {
  type: "file" | "directory" | "symlink" | "pipe";
  content?: string | Uint8Array;
  /** A link's target. */
  target?: string;
  /** Default: 0755 for a directory, else 0644. */
  mode?: number;
  /** Default: root. */
  uid?: number;
  gid?: number;
}

/** Files by absolute path. */
export type FakeTree = Map<string, FakeTreeEntry>;

export interface FakeState {
  /** Images, each with the first of its tags. */
  readonly images: Map<string, Readonly<ImageRecord>>;
  /** The image that each tag names. */
  readonly tags: Map<string, string>;
  /** Files by SHA-256. */
  readonly files: Map<string, FakeFile>;
  readonly operations: Map<string, FakeOperation>;
  /** Files that every image has. */
  readonly tree: FakeTree;
  /** The other files of each image, including those that an instance has added to its result. */
  readonly trees: Map<string, FakeTree>;
  readonly run: RunScript;
  /** The bodies of `POST /v1/instances`. */
  readonly instances: InstanceBody[];
  addImage(tag?: string): string;
  forgetImage(uuid: string): void;
  forgetFile(sha256: string): void;
  addOperation(kind: OperationKind, record: Partial<OperationRecord>): FakeOperation;
  /** Sets a tag, and removes it from the image that had it. */
  setTag(uuid: string, tag: string): ImageRecord | undefined;
  /** Returns all files of an image. */
  treeOf(uuid: string): FakeTree;
  /** Returns a record for each tag, so an image with several tags has several records. */
  imageRecords(): ImageRecord[];
  /** Lets time pass by the clock of the records. */
  pass(seconds: number): void;
  /** Adds the time by that clock. */
  dated(response: Response): Response;
  /** Finds an image by its id or `tag:<name>`. */
  findImage(reference: string): ImageRecord | undefined;
  fileId(sha256: string): string;
}

/** `clock`: of the service; without one each new id takes a second. */
export function createState(run: RunScript = () => undefined, clock?: Pick<Clock, "now">): FakeState {
  const images = new Map<string, Readonly<ImageRecord>>();
  const tags = new Map<string, string>();
  const tagsOf = (id: string) => [...tags].filter(([, image]) => image === id).map(([tag]) => tag);
  const files = new Map<string, FakeFile>();
  const operations = new Map<string, FakeOperation>();
  let counter = 0;
  let passedSeconds = 0;
  // Ids contain the kind of the thing, and are the same in every run.
  const uuid = (kind: "a" | "f" | "0") =>
    `${kind}0000000-0000-4000-8000-${String(++counter).padStart(12, "0")}`;
  const now = () =>
    new Date(clock?.now() ?? Date.UTC(2026, 0, 1) + (counter + passedSeconds) * 1000).toISOString();

  return {
    pass(seconds) {
      passedSeconds += seconds;
    },
    dated(response) {
      response.headers.set("date", new Date(now()).toUTCString());
      return response;
    },
    images,
    tags,
    files,
    operations,
    tree: new Map(),
    trees: new Map(),
    run,
    instances: [],
    addImage(tag) {
      const id = uuid("a");
      images.set(id, {
        uuid: id,
        get tag() {
          return tagsOf(id)[0] ?? null;
        },
        created_at: now(),
        operation_uuid: null,
      });
      if (tag !== undefined) this.setTag(id, tag);
      return id;
    },
    forgetImage(id) {
      images.delete(id);
      for (const tag of tagsOf(id)) tags.delete(tag);
    },
    forgetFile(sha256) {
      files.delete(sha256);
    },
    addOperation(kind, record) {
      const id = uuid("0");
      let wake = () => {};
      const operation: FakeOperation = {
        record: {
          uuid: id,
          kind,
          status: "EXECUTING",
          error: null,
          created_at: now(),
          result_image_uuid: null,
          ...record,
        },
        events: [],
        processes: new Map(),
        changed: Promise.resolve(),
        notify() {
          wake();
          arm();
        },
      };
      const arm = () => {
        operation.changed = new Promise((resolve) => {
          wake = resolve;
        });
      };
      arm();
      operations.set(id, operation);
      return operation;
    },
    setTag(id, tag) {
      const image = images.get(id);
      if (image === undefined) return undefined;
      tags.set(tag, id);
      return { ...image, tag };
    },
    treeOf(id) {
      return new Map([...this.tree, ...(this.trees.get(id) ?? [])]);
    },
    imageRecords: () =>
      [...images.values()].flatMap((image) => {
        const all = tagsOf(image.uuid);
        return all.length === 0 ? [image] : all.map((tag) => ({ ...image, tag }));
      }),
    findImage(reference) {
      if (!reference.startsWith("tag:")) return images.get(reference);
      return images.get(tags.get(reference.slice("tag:".length)) ?? "");
    },
    fileId: (sha256) => files.get(sha256)?.uuid ?? uuid("f"),
  };
}
