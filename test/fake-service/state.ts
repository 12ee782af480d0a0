/** The fake service's memory: images, files, operations. */
import type { FileRecord } from "../../src/service/wire/file.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import type { InstanceRequest } from "../../src/service/wire/instance.ts";
import type {
  LimitHit,
  OperationEvent,
  OperationKind,
  OperationRecord,
} from "../../src/service/wire/operation.ts";

/** What a RUN does. Everything may be left out: it then exits 0 at once, says nothing, and makes a new image. */
export interface RunOutcome {
  exitCode?: number;
  stdout?: string | Uint8Array;
  stderr?: string | Uint8Array;
  /** Output in pieces, as events; otherwise each stream is one. */
  chunks?: readonly RunChunk[];
  /** How long the command takes, after its chunks. */
  delayMs?: number;
  timedOut?: boolean;
  limitsHit?: LimitHit[];
  /** The service could not run it: the operation ends as FAILED. */
  error?: string;
  /** `unchanged`: the image that it started from. */
  image?: "unchanged";
  /** Bytes of each stream that are kept in the record. Default: the request's, else 65536. */
  truncateAt?: number;
  /** Called when the operation is over in the service; for tests that hold a command back. */
  until?: Promise<unknown>;
  /** Writes its standard input to its output when that is closed, and ends. For processes beside the command. */
  catsInput?: boolean;
}

export interface RunChunk {
  stream: "stdout" | "stderr";
  data: string | Uint8Array;
  /** Before it. */
  delayMs?: number;
  /** Not before this; for tests that hold output back. */
  after?: Promise<unknown>;
}

/** `count` is 0 for the first instance. */
export type RunScript = (request: InstanceRequest, count: number) => RunOutcome | undefined;

export interface FakeFile extends FileRecord {
  /** Up to 16 MiB; larger files are hashed and forgotten. */
  content?: Uint8Array;
}

export interface FakeOperation {
  record: OperationRecord;
  events: OperationEvent[];
  /** Resolves with the next change of the events. */
  changed: Promise<void>;
  notify(): void;
  request?: InstanceRequest;
  /** Those that were started beside the command, by `spid`. */
  processes: Map<number, FakeProcess>;
}

export interface FakeProcess {
  outcome: RunOutcome;
  input: string;
  isInputOpen: boolean;
  hasEnded: boolean;
}

/** Of an image: what the inspect routes show. */
export interface FakeTreeEntry {
  type: "file" | "directory" | "symlink" | "pipe";
  content?: string | Uint8Array;
  /** Of a link. */
  target?: string;
  /** Default: 0755 of a directory, else 0644. */
  mode?: number;
  /** Default: root's. */
  uid?: number;
  gid?: number;
}

/** By absolute path. */
export type FakeTree = Map<string, FakeTreeEntry>;

export interface FakeState {
  /** Each with the first of its tags. */
  readonly images: Map<string, Readonly<ImageRecord>>;
  /** The image that each tag names. */
  readonly tags: Map<string, string>;
  /** By SHA-256. */
  readonly files: Map<string, FakeFile>;
  readonly operations: Map<string, FakeOperation>;
  /** The same in every image. */
  readonly tree: FakeTree;
  /** By image: what it has beside that. What an instance makes of an image is in the result's. */
  readonly trees: Map<string, FakeTree>;
  readonly run: RunScript;
  /** The bodies of `POST /v1/instances`. */
  readonly instances: InstanceRequest[];
  addImage(tag?: string): string;
  forgetImage(uuid: string): void;
  forgetFile(sha256: string): void;
  addOperation(kind: OperationKind, record: Partial<OperationRecord>): FakeOperation;
  /** Takes the tag away from whatever has it. */
  setTag(uuid: string, tag: string): ImageRecord | undefined;
  /** All that an image holds. */
  treeOf(uuid: string): FakeTree;
  /** An image with several tags is there once for each. */
  imageRecords(): ImageRecord[];
  /** An image's id, or `tag:<name>`. */
  findImage(reference: string): ImageRecord | undefined;
  fileId(sha256: string): string;
}

export function createState(run: RunScript = () => undefined): FakeState {
  const images = new Map<string, Readonly<ImageRecord>>();
  const tags = new Map<string, string>();
  const tagsOf = (id: string) => [...tags].filter(([, image]) => image === id).map(([tag]) => tag);
  const files = new Map<string, FakeFile>();
  const operations = new Map<string, FakeOperation>();
  let counter = 0;
  // Ids say what they are of, and are the same in every run.
  const uuid = (kind: "a" | "f" | "0") =>
    `${kind}0000000-0000-4000-8000-${String(++counter).padStart(12, "0")}`;
  const now = () => new Date(Date.UTC(2026, 0, 1) + counter * 1000).toISOString();

  return {
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
