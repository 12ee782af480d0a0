import { takesTag } from "../service/images/reference.ts";
import type { ImageService } from "../service/service.ts";
import type { Dialect } from "./dialect.ts";

/**
 * The features of a service beyond the calls of the specification. It is created once, where a build begins; no other code reads the
 * names of extensions (`scripts/layering.ts` checks that). The service is asked once, for the first feature that needs it. `staging/`,
 * `mounts/mount-script.ts` and `copy/from-image.ts` replace what a plain service lacks.
 */
export interface ServiceSupport {
  /** COPY, ADD and WORKDIR make layers of their own, by `entries`. Otherwise their files wait for the next RUN. */
  fileLayers(): Promise<boolean>;
  /** The same as `fileLayers`, where no image's configuration is known, as for the index of a scope. */
  layersWithoutCommand(): Promise<boolean>;
  /** The fields of a file that a request may have besides content, owner and mode. */
  fileFeatures(): Promise<FileFeatures>;
  /** The special files of a context or an archive that the service can make. */
  specialFiles(): Promise<"none" | "pipes" | "all">;
  /** A request may copy from other images. Otherwise their files are read and placed like files of the context. */
  imageCopies(): Promise<boolean>;
  /** The service reads files of this machine where they are, and none is sent. */
  isInThisProcess: boolean;
  /** `RUN --mount`. Otherwise a script before and after the command replaces them, as far as that is safe. */
  mounts(): Promise<MountSupport>;
  /** The service stores an image's configuration, or its author and history. Otherwise bough's own store keeps them. */
  stored(): Promise<{ config: boolean; origin: boolean }>;
  /** A request may give the user of its process as numbers. Otherwise the command may be run as root. */
  userNumbers(): Promise<boolean>;
  /** The service sets HOME itself, as runc does: to the home of the process's user in the image's passwd. */
  home(): Promise<boolean>;
  readonlyNetworkFiles(): Promise<boolean>;
  /** Options that limit what a command uses. */
  limits(): Promise<{ resources: boolean; shm: boolean; ulimits: boolean }>;
  hostNetwork(): Promise<boolean>;
  extraHosts(): Promise<boolean>;
  /** An image without files. */
  scratch(): Promise<boolean>;
  /** The service accepts this tag. Otherwise an import sets none. */
  tag(tag: string): Promise<boolean>;
  /** The list of images is complete: an image that it lacks does not exist. Other services may list one page, or nothing. */
  listsAllImages(): Promise<boolean>;
  /** The list of images has more than their tags. Never rejects: true if the service does not report its features. */
  imageDetails(): Promise<boolean>;
  /** The service accepts images whose layers it fetches from elsewhere when they are needed. */
  remoteLayers(): Promise<boolean>;
  /** The contents of `RUN --mount=type=cache` can be read, and a new one can start with what it had elsewhere. */
  cacheArchives(): Promise<boolean>;
  /** Cache mounts of one build can be kept apart from all others. */
  cacheGenerations(): Promise<boolean>;
  /** The size of each layer of an image. */
  layerSizes(): Promise<boolean>;
  /** The platform, such as `linux/amd64`; `undefined` if the service does not report it. */
  platform(): Promise<string | undefined>;
  /** The service has images for other platforms than its own, and runs commands in them where it can. */
  platforms(): Promise<boolean>;

  /** The service has returned an image's configuration. One that does not has no extensions, so a request for them is saved. */
  describesImages(): boolean;
  /** These three are false once the service has refused to show an image's files, or to list images or operations. */
  inspection(): boolean;
  imageList(): boolean;
  operationList(): boolean;
}

/** Features of a request's files that a service may support, in addition to contents, owners and modes. */
export interface FileFeatures {
  times: boolean;
  links: boolean;
  /** Times of other entries, extended attributes, and entries that replace others. */
  attributes: boolean;
}

/** The kinds of mounts whose contents a service can keep out of its images. */
export interface MountSupport {
  /** False if the service has no mounts at all. */
  secrets: boolean;
  agents: boolean;
}

/** The part of a service that is asked for its features. */
type AskedService = Pick<ImageService, "capabilities"> & Partial<Pick<ImageService, "isInThisProcess">>;

/** @param dialect `undefined` outside a build */
export function supportOf(
  { capabilities, isInThisProcess = false }: AskedService,
  dialect?: Dialect,
): ServiceSupport {
  const has = async (extension: Extension) => (await capabilities.extensions()).has(extension);
  const describesImages = () => capabilities.has("config");
  const ifDescribed = async (extension: Extension) => describesImages() && (await has(extension));
  return {
    // With `--docker` the service has been asked in any case.
    fileLayers: async () =>
      (dialect?.keepsConfiguration === true || describesImages()) && (await has("entries")),
    layersWithoutCommand: () => has("entries"),
    fileFeatures: async () => ({
      times: await ifDescribed("file-times"),
      links: await ifDescribed("hard-links"),
      attributes: await ifDescribed("entry-attributes"),
    }),
    specialFiles: async () =>
      (await has("entry-attributes")) ? ((await has("devices")) ? "all" : "pipes") : "none",
    imageCopies: async () => (await has("copies")) && (await has("entries")),
    isInThisProcess,
    async mounts() {
      const secrets = await has("mounts");
      return { secrets, agents: secrets && (await has("ssh-mounts")) };
    },
    stored: async () => ({ config: await ifDescribed("configure"), origin: await ifDescribed("history") }),
    userNumbers: capabilities.takesUserNumbers,
    home: () => has("home"),
    readonlyNetworkFiles: () => has("readonly-network-files"),
    limits: async () => ({
      resources: await has("resource-limits"),
      shm: await has("shm-size"),
      ulimits: await has("ulimits"),
    }),
    hostNetwork: () => has("host-network"),
    extraHosts: () => has("extra-hosts"),
    scratch: () => has("scratch"),
    tag: (tag) => takesTag(tag, capabilities),
    listsAllImages: () => has("image-list"),
    async imageDetails() {
      try {
        return (await has("config")) || (await has("identity"));
      } catch {
        return true;
      }
    },
    remoteLayers: () => has("remote-layers"),
    cacheArchives: () => has("cache-archives"),
    cacheGenerations: () => has("cache-generations"),
    layerSizes: () => has("layer-sizes"),
    platform: capabilities.platform,
    platforms: () => has("platforms"),
    describesImages,
    inspection: () => !capabilities.lacks("inspect"),
    imageList: () => !capabilities.lacks("imageList"),
    operationList: () => !capabilities.lacks("operationList"),
  };
}

/** Names in the service's response to `GET /v1/whoami` that a build asks for. */
type Extension =
  | "cache-archives"
  | "cache-generations"
  | "config"
  | "configure"
  | "copies"
  | "platforms"
  | "devices"
  | "entries"
  | "entry-attributes"
  | "extra-hosts"
  | "file-times"
  | "hard-links"
  | "history"
  | "home"
  | "host-network"
  | "identity"
  | "image-list"
  | "layer-sizes"
  | "remote-layers"
  | "mounts"
  | "readonly-network-files"
  | "resource-limits"
  | "scratch"
  | "shm-size"
  | "ssh-mounts"
  | "ulimits";
