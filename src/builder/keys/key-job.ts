import type { Clock } from "../../clock.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { Platform } from "../../image/platform.ts";
import type { FoundCommit, RepositoryAddress } from "../addresses/repository-address.ts";
import type { AskedBuild, SourceFiles } from "../job.ts";
import type { RemoteAccess } from "../remote-files/remote-access.ts";
import type { BuildPlatforms } from "../state/platform.ts";

/** An image to start or copy from. */
export interface BaseKey {
  /** A hash that is equal on all machines and services. */
  hash: string;
  config: ImageConfig;
  author?: string | undefined;
}

/** The inputs of a target's content key. */
export interface KeyJob {
  asked: Pick<
    AskedBuild,
    "dialect" | "dockerfile" | "target" | "contexts" | "buildArgs" | "labels" | "secrets"
  > & {
    commands: Pick<AskedBuild["commands"], "network" | "hosts">;
  };
  platforms: BuildPlatforms;
  source: Omit<SourceFiles, "fileStates">;
  /** @param platform set for another one than the service's own */
  findBase(reference: string, platform: Platform | undefined): Promise<BaseKey>;
  /** Returns the SHA-256 of a URL's content, in hex. */
  hashUrl(url: string, access: RemoteAccess): Promise<string>;
  findCommit(address: RepositoryAddress, access: RemoteAccess): Promise<FoundCommit>;
  access: RemoteAccess;
  clock: Clock;
  signal: AbortSignal;
}
