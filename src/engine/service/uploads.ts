import type { Service } from "../../service/client.ts";
import { changedFileError, createFileBody, readChecked } from "../../service/files/local-file.ts";
import {
  createSendOnce,
  type KnownFiles,
  type LocalFile,
  type UploadProgress,
} from "../../service/files/upload.ts";
import type { FileRecord, UnhashedFile } from "../../service/wire/file.ts";
import { inOneChunk, streamOf, tap } from "../../streams.ts";
import { findFile, storeFile } from "../records/files.ts";
import type { EngineState } from "../state.ts";
import type { Calls } from "./calls.ts";

type Uploads = Pick<Service, "uploadFiles" | "sendUnhashed" | "sendOnce" | "findFile" | "uploadStream">;

/** Stores contents in the engine: files are copied while they are read. */
export function createUploads(
  state: EngineState,
  { read, change }: Calls,
  { signal, knownFiles }: { signal: AbortSignal; knownFiles: KnownFiles | undefined },
): Uploads {
  const sendOnce = createSendOnce(knownFiles);

  const find = (sha256: string) => findFile(state.database, state.layout, "sha256", sha256)?.uuid;

  function store(
    chunks: AsyncIterable<Uint8Array>,
    stopping: AbortSignal,
    inspect?: (sha256: string) => void,
  ): Promise<FileRecord> {
    const { database, layout, clock } = state;
    const options = { signal: stopping, inspect };
    return change(() => storeFile(database, layout, streamOf(chunks), clock.now, options));
  }

  /** Rejects, and stores nothing, if the file's bytes differ from those that were hashed. */
  async function send(
    file: LocalFile,
    stopping: AbortSignal,
    onBytes: (taken: number) => void,
  ): Promise<string> {
    const body = createFileBody(file, onBytes);
    const small = file.size <= maxSmallBytes ? (file.content ?? readChecked(file)) : undefined;
    const inspect = (sha256: string) => {
      if (sha256 !== file.sha256) throw changedFileError(file);
    };
    try {
      return (await store(small === undefined ? body.make() : inOneChunk(small), stopping, inspect)).uuid;
    } finally {
      body.close();
    }
  }

  return {
    sendOnce,

    findFile: (sha256) => read(() => find(sha256)),

    async uploadFiles(files, progress, { signal: own, onFile } = {}) {
      const stopping = own === undefined ? signal : AbortSignal.any([signal, own]);
      const ids = new Map<string, string>();
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      try {
        for (const file of files) {
          stopping.throwIfAborted();
          if (ids.has(file.sha256)) continue;
          let isReused = true;
          const uuid = await sendOnce(file.sha256, async () => {
            const known = await read(() => find(file.sha256));
            if (known !== undefined) return known;
            isReused = false;
            const report = (taken: number) => progress?.({ ...done, sentBytes: done.sentBytes + taken });
            return send(file, stopping, report);
          });
          ids.set(file.sha256, uuid);
          done.files++;
          if (isReused) done.reused++;
          else done.sentBytes += file.size;
          onFile?.(file.sha256, isReused);
          progress?.({ ...done });
        }
      } finally {
        knownFiles?.flush?.();
      }
      return ids;
    },

    async sendUnhashed(file, { signal: own, onBytes, onHash }) {
      const stopping = AbortSignal.any([signal, own]);
      const { sha256, uuid } = await store(readUnhashed(file, onBytes), stopping, onHash);
      knownFiles?.set(sha256, uuid);
      knownFiles?.flush?.();
      return { sha256, uuid, isReused: false };
    },

    async uploadStream(body, { progress, inspect } = {}) {
      let bytes = 0;
      const chunks = tap(typeof body === "function" ? body() : body, (chunk) => {
        bytes += chunk.length;
        progress?.(bytes);
      });
      const { uuid, sha256, size } = await store(chunks, signal, inspect);
      return { uuid, sha256, size };
    },
  };
}

const maxSmallBytes = 1024 * 1024;

async function* readUnhashed(
  { size, open }: UnhashedFile,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const file = open();
  try {
    for (let at = 0; at < size; ) {
      const buffer = new Uint8Array(Math.min(maxSmallBytes, size - at));
      const length = file.read(buffer, buffer.length, at);
      if (length === 0) throw file.changed();
      at += length;
      onBytes(at);
      yield buffer.subarray(0, length);
    }
    file.requireUnchanged();
  } finally {
    file.close();
  }
}
