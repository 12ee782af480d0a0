/** Extended attributes: their values in base64, by name. */
export type ExtendedAttributes = Readonly<Record<string, string>>;

/** A file put in place before an instance's command starts. `mode` is octal text, such as `0644`. */
export interface InstanceFile {
  uuid: string;
  uid: number;
  gid: number;
  mode: string;
  /** Seconds since the epoch, possibly with a fraction. Only if the service has the extension `file-times`. */
  mtime?: number;
  /** Only if the service has the extension `entry-attributes`. */
  attributes?: ExtendedAttributes;
  /** Only if the service has the extension `entry-attributes`. */
  replaces?: true;
  /**
   * Absolute paths of further hard links to the file; in a mount, from its target. Only if the service has the extension
   * `hard-links`.
   */
  links?: readonly string[];
}

/**
 * A file put in place before an instance's command starts: one of this machine, which must still be what was hashed, or one that
 * the service has. Only for a service in this process: it never leaves it.
 */
export type HostFile = {
  /** An absolute path in the image; for a mount, from its target. "/" is a mount that is a file itself. */
  destination: string;
  sha256: string;
  size: number;
  uid: number;
  gid: number;
  mode: number;
  /** Seconds since the epoch. */
  mtime: number | undefined;
  attributes?: ExtendedAttributes | undefined;
  /** The file replaces even a directory. */
  replaces?: true | undefined;
  /** Absolute paths of further hard links to the file. */
  links?: readonly string[];
} & ({ path: string } | { uuid: string });

/** Files of this machine in the request of a client in the same process. No request that comes from elsewhere can make it. */
export class HostFiles {
  static readonly none = new HostFiles(() => []);

  readonly #list: () => Iterable<HostFile>;

  /** `list` is called when the files are needed, since a large context has very many. */
  constructor(list: () => Iterable<HostFile>) {
    this.#list = list;
  }

  [Symbol.iterator](): Iterator<HostFile> {
    return this.#list()[Symbol.iterator]();
  }

  toJSON(): HostFile[] {
    return [...this];
  }
}

/**
 * A directory or link put in place before the files. Part of the extension `entries`, which bough's own engine has. Without a
 * `mode` an existing directory keeps its owner and mode. Missing parents are made, as for files.
 */
export type InstanceEntry = { uid: number; gid: number } & EntryAttributes &
  (
    | { type: "directory"; mode?: string }
    | { type: "symlink"; target: string }
    | ({ type: "special"; mode: string } & SpecialKind)
  );

/** Part of the extension `entry-attributes`, as are special files. */
interface EntryAttributes {
  /** Seconds since the epoch, possibly with a fraction. */
  mtime?: number;
  attributes?: ExtendedAttributes;
  /** The entry replaces what the image has at its path, unless both are directories. */
  replaces?: true;
}

/** A named pipe, or a device, which only a service with the extension `devices` can make. */
export type SpecialKind =
  | { kind: "pipe" }
  | { kind: "character-device" | "block-device"; major: number; minor: number };

export interface FileRecord {
  uuid: string;
  sha256: string;
  size: number;
  created_at?: string;
  updated_at?: string;
}

/** A file that is read once, for its hash and for the service. */
export interface UnhashedFile {
  size: number;
  /** Throws if it is not the file that was found. */
  open(): OpenFile;
}

export interface OpenFile {
  descriptor: number;
  /** Returns the number of bytes that were read. */
  read(buffer: Uint8Array, length: number, position: number): number;
  /** Throws if it is no longer the file that was found. */
  requireUnchanged(): void;
  /** Returns the error for a file that has changed. */
  changed(): Error;
  close(): void;
}
