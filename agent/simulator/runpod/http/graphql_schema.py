"""The part of the vendor's GraphQL schema that its SDK, its command line and other public clients use.

Names and nullability follow public clients and documents (the vendor answers no introspection). `interruptablePrice`
and `cudaVersion` of LowestPrice are missing, because the vendor removed them in 2026-07.
"""

import functools

import graphql

SDL = """
scalar Void
scalar JSON

enum CloudTypeEnum { ALL SECURE COMMUNITY }
enum PodStatus { CREATED RUNNING RESTARTING EXITED PAUSED DEAD TERMINATED }
enum PodType { INTERRUPTABLE RESERVED BID BACKGROUND }
enum PodStopReason { IMAGE_AUTH_ERROR IMAGE_NOT_FOUND IMAGE_PULL_ERROR CUDA_VERSION_MISMATCH }
enum ComputeType { GPU CPU }

input GpuTypeFilter { id: String ids: [String] cluster: Boolean }
input GpuLowestPriceInput {
  gpuCount: Int! minDisk: Int totalDisk: Int minMemoryInGb: Int minVcpuCount: Int minDownload: Int minUpload: Int
  secureCloud: Boolean supportPublicIp: Boolean countryCode: String dataCenterId: String cudaVersion: String
  minCudaVersion: String allowedCudaVersions: [String] compliance: [String] includeAiApi: Boolean globalNetwork: Boolean
}
input GpuAvailabilityInput { gpuCount: Int secureCloud: Boolean gpuTypeId: String minDisk: Int }
input EnvironmentVariableInput { key: String! value: String! }
input PodFilter { podId: String! }
input PodFindAndDeployOnDemandInput {
  COMMON
  deployCost: Float gpuTypeIdList: [String] savingsPlan: JSON instanceIds: [String] computeType: ComputeType
  globalNetwork: Boolean compliance: [String] aiApiId: String
}
input PodRentInterruptableInput { COMMON bidPerGpu: Float! }
input DeployCpuPodInput { COMMON instanceId: String deployCost: Float }
input PodBidResumeInput { podId: String! bidPerGpu: Float! gpuCount: Int! }
input PodResumeInput { podId: String! gpuCount: Int syncMachine: Boolean computeType: ComputeType }
input PodStopInput { podId: String! incrementVersion: Boolean reason: PodStopReason }
input PodTerminateInput { podId: String! }
input PodEditJobInput {
  podId: String! imageName: String dockerArgs: String env: [EnvironmentVariableInput] port: Int ports: String
  containerDiskInGb: Int volumeInGb: Int volumeMountPath: String containerRegistryAuthId: String
}
input UpdateUserSettingsInput { pubKey: String }

type GpuType {
  id: String displayName: String manufacturer: String memoryInGb: Int cudaCores: Int secureCloud: Boolean
  communityCloud: Boolean securePrice: Float communityPrice: Float secureSpotPrice: Float communitySpotPrice: Float
  clusterPrice: Float oneWeekPrice: Float oneMonthPrice: Float threeMonthPrice: Float sixMonthPrice: Float
  oneYearPrice: Float maxGpuCount: Int maxGpuCountSecureCloud: Int maxGpuCountCommunityCloud: Int minPodGpuCount: Int
  nodeGroupGpuSizes: [Int] nodeGroupDatacenters: [DataCenter] throughput: Int
  lowestPrice(input: GpuLowestPriceInput): LowestPrice
}
type CudaVersion { cudaVersion: String availability: String }
type LowestPrice {
  gpuName: String gpuTypeId: String minimumBidPrice: Float uninterruptablePrice: Float minMemory: Int minVcpu: Int
  rentalPercentage: Float rentedCount: Int totalCount: Int stockStatus: String minDownload: Int minDisk: Int
  minUpload: Int countryCode: String supportPublicIp: Boolean compliance: [String] maxUnreservedGpuCount: Int
  availableGpuCounts: [Int] gpuTypeCudaVersions: [CudaVersion]
}
type GpuAvailability { id: String gpuTypeId: String displayName: String stockStatus: String available: Boolean }
type DataCenter {
  id: String name: String location: String listed: Boolean storageSupport: Boolean globalNetwork: Boolean
  gpuAvailability(input: GpuAvailabilityInput): [GpuAvailability] compliance: [String]
}
type CpuFlavor {
  id: String displayName: String groupId: String minVcpu: Int maxVcpu: Int ramMultiplier: Int diskLimitPerVcpu: Int
}
type NetworkVolume { id: String name: String size: Int dataCenterId: String dataCenter: DataCenter }
type SpendDetails { localStoragePerHour: Float networkStoragePerHour: Float gpuComputePerHour: Float }
type RegistryCredential { id: String name: String }
type User {
  id: String email: String authId: String clientBalance: Float currentSpendPerHr: Float spendLimit: Int
  minBalance: Float underBalance: Boolean notifyPodsStale: Boolean notifyPodsGeneral: Boolean notifyLowBalance: Boolean
  creditAlertThreshold: Float spendDetails: SpendDetails pubKey: String networkVolumes: [NetworkVolume] pods: [Pod]
  containerRegistryCreds: [RegistryCredential]
}
type PodPort { ip: String isIpPublic: Boolean privatePort: Int publicPort: Int type: String }
type PodGpu { id: String gpuUtilPercent: Float memoryUtilPercent: Float }
type PodContainer { cpuPercent: Float memoryPercent: Float }
type PodRuntime { uptimeInSeconds: Int ports: [PodPort] gpus: [PodGpu] container: PodContainer }
type PodTelemetry { state: String time: String cpuUtilization: Float memoryUtilization: Float }
type PodMachine {
  costPerHr: Float currentPricePerGpu: Float gpuAvailable: Int gpuDisplayName: String gpuTypeId: String location: String
  dataCenterId: String podHostId: String secureCloud: Boolean supportPublicIp: Boolean listed: Boolean
  minPodGpuCount: Int maxDownloadSpeedMbps: Int maxUploadSpeedMbps: Int maintenanceStart: String maintenanceEnd: String
  maintenanceNote: String note: String cpuCount: Int vcpuTotal: Int memoryTotal: Int machineType: String
}
type AttachedGpu { id: String podId: String }
type Pod {
  id: String name: String desiredStatus: PodStatus lastStatusChange: String podType: PodType costPerHr: Float
  adjustedCostPerHr: Float costMultiplier: Float lowestBidPriceToResume: Float gpuCount: Int gpus: [AttachedGpu]
  vcpuCount: Float memoryInGb: Float containerDiskInGb: Int volumeInGb: Int volumeMountPath: String volumeKey: String
  volumeEncrypted: Boolean networkVolumeId: String networkVolume: NetworkVolume imageName: String dockerArgs: String
  dockerId: String env: [String] port: Int ports: String templateId: String containerRegistryAuthId: String
  machineId: String machineType: String machine: PodMachine runtime: PodRuntime latestTelemetry: PodTelemetry
  uptimeSeconds: Int createdAt: String lastStartedAt: String consumerUserId: String locked: Boolean version: Int
  cpuFlavorId: String aiApiId: String gpuPowerLimitPercent: Int clusterIp: String readableStatus: String
}
type Query {
  gpuTypes(input: GpuTypeFilter): [GpuType]
  dataCenters: [DataCenter]
  countryCodes: [String]
  cpuFlavors: [CpuFlavor]
  myself: User
  pod(input: PodFilter): Pod
}
type Mutation {
  podFindAndDeployOnDemand(input: PodFindAndDeployOnDemandInput): Pod
  SPOT
  deployCpuPod(input: DeployCpuPodInput): Pod
  podResume(input: PodResumeInput!): Pod
  podStop(input: PodStopInput!): Pod
  podTerminate(input: PodTerminateInput!): Void
  podEditJob(input: PodEditJobInput!): Pod
  updateUserSettings(input: UpdateUserSettingsInput): User
}
"""
_COMMON = """
  cloudType: CloudTypeEnum gpuCount: Int gpuTypeId: String name: String imageName: String templateId: String
  dockerArgs: String env: [EnvironmentVariableInput] ports: String port: Int containerDiskInGb: Int volumeInGb: Int
  volumeMountPath: String volumeKey: String networkVolumeId: String dataCenterId: String countryCode: String
  minVcpuCount: Int minMemoryInGb: Int minDisk: Int minDownload: Int minUpload: Int supportPublicIp: Boolean
  startSsh: Boolean startJupyter: Boolean stopAfter: String terminateAfter: String cudaVersion: String
  allowedCudaVersions: [String] minCudaVersion: String containerRegistryAuthId: String
"""
_SPOT = """
  podRentInterruptable(input: PodRentInterruptableInput!): Pod
  podBidResume(input: PodBidResumeInput!): Pod
"""


@functools.cache
def schema(*, has_spot: bool) -> graphql.GraphQLSchema:
    """Return the schema, with or without the mutations of interruptible pods."""
    text = SDL.replace("COMMON\n", _COMMON).replace("COMMON ", _COMMON).replace("  SPOT\n", _SPOT if has_spot else "")
    return graphql.build_schema(text)
