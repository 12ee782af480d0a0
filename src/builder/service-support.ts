import { takesTag } from "../service/images/reference.ts";
import type { ImageService } from "../service/service.ts";
import type { Dialect } from "./dialect.ts";

/**
 * What a service can do beyond the calls of the specification, each as a question with a name. Made once, where a build begins;
 * nobody else reads the names of extensions (rule in `scripts/layering.ts`). The service is asked at the first question that needs it, and
 * once. What a plain service lacks is made up for in `staging/`, `mounts/mount-script.ts` and `copy/from-image.ts`.
 */
export interface ServiceSupport {
  /** COPY, ADD and WORKDIR make layers of their own, by `entries`. Otherwise their files wait for the next RUN. */
  fileLayers(): Promise<boolean>;
  /** The same where no image is described, as for the index of a scope. */
  layersWithoutCommand(): Promise<boolean>;
  /** What a request may say of a file besides its content, owner and mode. */
  fileFeatures(): Promise<FileFeatures>;
  /** Special files of a context or an archive that it can make. */
  specialFiles(): Promise<"none" | "pipes" | "all">;
  /** A request may copy from other images. Otherwise their files are read and placed like files of the context. */
  imageCopies(): Promise<boolean>;
  /** Files of this machine are there for it, too: it reads them where they are, and none is sent. */
  isInThisProcess: boolean;
  /** `RUN --mount`. Otherwise a script before and after the command replaces them, as far as that is safe. */
  mounts(): Promise<MountSupport>;
  /** What it stores with an image. Otherwise bough's own store keeps it. */
  stored(): Promise<{ config: boolean; origin: boolean }>;
  /** A request may give the user of its process as numbers. Otherwise the command may be run as root. */
  userNumbers(): Promise<boolean>;
  /** Sets HOME itself, as runc does: to the home of the process's user in the image's passwd. */
  home(): Promise<boolean>;
  readonlyNetworkFiles(): Promise<boolean>;
  /** Options that limit what a command uses. */
  limits(): Promise<{ resources: boolean; shm: boolean; ulimits: boolean }>;
  hostNetwork(): Promise<boolean>;
  extraHosts(): Promise<boolean>;
  /** An image without files. */
  scratch(): Promise<boolean>;
  /** Otherwise an import had better set no such tag. */
  tag(tag: string): Promise<boolean>;
  /** An image that its list does not show does not exist. Other services may show the first page, or nothing. */
  listsAllImages(): Promise<boolean>;
  /** Its list says more of an image than its tags. Also true, and never rejects, if it does not say what it can do. */
  imageDetails(): Promise<boolean>;
  /** Takes images whose layers it can fetch from elsewhere when they are needed. */
  remoteLayers(): Promise<boolean>;
  /** The contents of `RUN --mount=type=cache` can be read, and a new one can start with what it had elsewhere. */
  cacheArchives(): Promise<boolean>;
  /** Cache mounts of one build can be kept apart from all others. */
  cacheGenerations(): Promise<boolean>;
  /** The size of each layer of an image. */
  layerSizes(): Promise<boolean>;
  /** Such as `linux/amd64`; `undefined` if it does not say. */
  platform(): Promise<string | undefined>;
  /** Images for other platforms than the service's, and commands in them where it can run them. */
  platforms(): Promise<boolean>;

  /** Has returned an image's configuration. A service that does not has no extensions, and is not asked, to save a request. */
  describesImages(): boolean;
  /** False once the service has refused to show an image's files, or a list of images or operations. */
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
  /** Also true if, and only if, it has mounts at all. */
  secrets: boolean;
  agents: boolean;
}

/** Part of a service, for commands that need no more. */
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
