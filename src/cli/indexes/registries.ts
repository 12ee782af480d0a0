/** Opens the repositories that an index and its images are in. */
import type { BlobSource, BlobStore } from "../../registry/blob-store.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { openBlobSource, openBlobStore } from "../../registry/open-blob-store.ts";
import type { Runtime } from "../process/runtime.ts";

export function openSource(
  address: string,
  { fetch, clock, environment }: Runtime,
  credentials?: RegistryCredentials,
): BlobSource {
  return openBlobSource(address, { fetch, clock, environment, credentials });
}

export function openDestination(
  address: string,
  { fetch, clock, environment }: Runtime,
  credentials?: RegistryCredentials,
): BlobStore {
  return openBlobStore(address, { fetch, clock, environment, credentials });
}
